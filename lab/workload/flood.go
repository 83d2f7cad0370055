package workload

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// A flood is a workload too, named after its shape, and after its share where that is not
// the whole: flood:urls, flood:urls:5%. Beside the flood there is honest traffic: HonestKeys
// keys that come again and again, as often as Zipf's law says.
const (
	floodPrefix = "flood:"
	wholeFlood  = 100 // percent

	// HonestKeys is how many keys are honest.
	HonestKeys = 500
	// zipfExponent is that of what people ask servers for: the first key has a fifth of the
	// spans, the last one in five thousand.
	zipfExponent = 1.1
)

// IsFlood says whether a name is that of a flood, known or not.
func IsFlood(name string) bool { return strings.HasPrefix(name, floodPrefix) }

// Flood is the name of a flood of a shape, of so many spans in a hundred.
func Flood(shape string, percent int) string {
	if percent == wholeFlood {
		return floodPrefix + shape
	}
	return fmt.Sprintf("%s%s:%d%%", floodPrefix, shape, percent)
}

// parseFlood is the inverse of Flood.
func parseFlood(name string) (s *shape, percent int, err error) {
	of, share, isMixed := strings.Cut(strings.TrimPrefix(name, floodPrefix), ":")
	at := slices.IndexFunc(shapes, func(s shape) bool { return s.name == of })
	if at < 0 {
		return nil, 0, fmt.Errorf("choose workload: %q is no shape of a flood; there are %s", of,
			strings.Join(Shapes(), ", "))
	}
	percent = wholeFlood
	if isMixed {
		digits, isPercent := strings.CutSuffix(share, "%")
		if percent, err = strconv.Atoi(digits); err != nil || !isPercent || percent < 1 ||
			percent > wholeFlood {
			return nil, 0, fmt.Errorf("choose workload: %q is no share of a flood; write 1%% to 100%%, "+
				"such as %s", share, Flood(of, 5))
		}
	}
	return &shapes[at], percent, nil
}

// UsesNumbers says whether a workload is about keys that are numbered and used once, so
// that it can't be sent with keys by their bytes.
func UsesNumbers(name string) bool {
	s, _, err := parseFlood(name)
	return IsFlood(name) && err == nil && s.numbered
}

// Honest are the keys that come beside a flood of a shape. Words tell them apart, as they tell apart the
// routes of an application; by numbers alone a template of the flood may explain them.
func Honest(of string) []span.Key {
	keys := make([]span.Key, HonestKeys)
	for i := range keys {
		keys[i] = namedKey(i%services, i%operations, i, word(i))
		if s, _, err := parseFlood(floodPrefix + of); err == nil && s.honest != nil {
			s.honest(i, &keys[i])
		}
	}
	return keys
}

// flood makes the keys of a flood, and honest ones between them.
type flood struct {
	rnd     *rand.Rand
	percent int
	honest  []span.Key
	zipf    *rand.Zipf
	write   func(*writer, *span.Key)
	writer  writer
	keys    []span.Key
}

func newFlood(name string, seed uint64, rnd *rand.Rand) (*flood, error) {
	s, percent, err := parseFlood(name)
	if err != nil {
		return nil, err
	}
	f := &flood{
		rnd: rnd, percent: percent, write: s.write,
		writer: writer{rnd: rnd, serial: seed << serialBits},
	}
	if percent < wholeFlood {
		f.honest, f.zipf = Honest(s.name), rand.NewZipf(rnd, zipfExponent, 1, HonestKeys-1)
	}
	return f, nil
}

// all is nothing even where there are honest keys: those of the flood are new each time.
func (f *flood) all() []span.Key { return nil }

func (f *flood) fill(batch []Snapshot) {
	if len(f.keys) < len(batch) {
		f.keys = make([]span.Key, len(batch))
	}
	f.writer.begin()
	for i := range batch {
		if f.zipf != nil && f.rnd.IntN(wholeFlood) >= f.percent {
			batch[i] = Snapshot{Key: &f.honest[f.zipf.Uint64()], Index: -1}
			continue
		}
		key := &f.keys[i]
		*key = span.Key{
			Service: "shop-0", Operation: "shop.operation.0",
			Resource: "GET /api/v1/orders/0/items", TraceRoot: span.TraceRootFalse,
		}
		f.writer.key(key)
		f.write(&f.writer, key)
		batch[i] = Snapshot{Key: key, Index: -1}
	}
	f.writer.end()
}

// IsHostile says whether only a tracer that means harm makes a flood of that shape.
func IsHostile(of string) bool {
	s, _, err := parseFlood(floodPrefix + of)
	return err == nil && s.hostile
}
