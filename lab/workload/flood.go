package workload

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// A flood is a workload with a name such as flood:urls or flood:urls:5%: its shape, and its
// share of all spans if that is not 100%. The other spans are regular traffic: HonestKeys keys
// that recur with the frequencies of Zipf's law.
const (
	floodPrefix = "flood:"
	wholeFlood  = 100 // percent

	// HonestKeys is the number of keys of the regular traffic.
	HonestKeys = 500
	// zipfExponent is typical of web requests: the first key has a fifth of the spans, the last
	// one in five thousand.
	zipfExponent = 1.1
)

// IsFlood reports whether a name is that of a flood, even of an unknown shape.
func IsFlood(name string) bool { return strings.HasPrefix(name, floodPrefix) }

// Flood returns the name of a flood with a shape and its percentage of all spans.
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

// UsesNumbers reports whether a workload is about keys that are numbered and used once. It
// cannot be sent with keys in full.
func UsesNumbers(name string) bool {
	s, _, err := parseFlood(name)
	return IsFlood(name) && err == nil && s.numbered
}

// Honest returns the keys of the regular traffic during a flood of a shape. They differ in
// words, as the routes of an application do. Keys that differ in numbers only could match a
// template that was found for the flood.
func Honest(shapeName string) []span.Key {
	keys := make([]span.Key, HonestKeys)
	for i := range keys {
		keys[i] = namedKey(i%services, i%operations, i, word(i))
		if s, _, err := parseFlood(floodPrefix + shapeName); err == nil && s.honest != nil {
			s.honest(i, &keys[i])
		}
	}
	return keys
}

// flood generates the keys of a flood, mixed with regular ones.
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

// all returns nil, even if the flood has regular keys: the others are new each time.
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

// IsHostile reports whether only a malicious tracer can cause a flood of that shape.
func IsHostile(shapeName string) bool {
	s, _, err := parseFlood(floodPrefix + shapeName)
	return err == nil && s.hostile
}
