package admit

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// TestFlood_AmongUsualKeys publishes high-cardinality bursts in some of the labels, mixed with
// normal keys, with and without numbers. It compares the rows of each key with a model.
func TestFlood_AmongUsualKeys(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) { floodsAmongUsualKeys(t, rand.New(rand.NewPCG(seed, 2))) })
	}
}

func floodsAmongUsualKeys(t *testing.T, rnd *rand.Rand) {
	got := map[string]uint64{}
	h := newHarness(t, func(_ *Config, a *aggregate.Config) {
		a.Drainers = 1 + rnd.IntN(3)
		for f := range a.Budgets {
			a.Budgets[f] = keptLabels
		}
		a.Masking = registry.MaskNever
		a.Deliver = func(s *aggregate.Sealed) {
			for part := range s.Parts {
				got[nameOf(&s.Keys[part.Key].Key)] += part.Counts().Spans
			}
			s.Delivery.Resolve(nil)
			s.Release()
		}
	})

	h.aggregator.Start()
	p := h.NewPublisher(span.Origin{Service: "web"})
	for number := range uint32(numberedKeys) {
		k := usualKey(int(number))
		if err := p.Define(number, wire.AppendKey(nil, &k)); err != nil {
			t.Fatal(err)
		}
	}
	sent := floods{
		rnd: rnd, values: map[span.Label][]string{}, seen: map[span.Label]map[string]bool{},
		want: map[string]uint64{}, lost: map[span.Label]uint64{},
	}
	for batch := range 60 {
		if batch%10 == 0 {
			sent.differ, sent.of = 1+rnd.IntN(15), []int{40, 40_000}[batch/10%2]
		}
		if reason, ok := h.offer(p, sent.batch()); !ok {
			t.Fatalf("a batch was refused as %s", reason)
		}
	}
	if len(p.finder.keys.known) > 512 {
		t.Errorf("%d keys of floods are in the table", len(p.finder.keys.known))
	}
	p.Close()
	h.aggregator.Stop()
	mistaken := uint64(0)
	for key, spans := range got {
		if sent.want[key] == 0 {
			mistaken += spans
		}
	}
	if mistaken > mostMistaken {
		t.Errorf("%d spans have a row that their key should not have", mistaken)
	}
	missing := uint64(0)
	for key, spans := range sent.want {
		if missing += spans - got[key]; got[key] > spans || got[key]+mistaken < spans {
			t.Errorf("%d spans of %s, want %d", got[key], key, spans)
		}
	}
	if missing != mistaken || h.Stats().Collapsed["whole_key"]+h.Stats().Collapsed["resource"] == 0 {
		t.Errorf("%d spans are missing, %d elsewhere; collapsed %v", missing, mistaken, h.Stats().Collapsed)
	}
	for field, lost := range sent.lost {
		if counted := h.Stats().Collapsed[field.String()]; counted > lost || counted+mistaken < lost {
			t.Errorf("%d spans lost their %s, want %d", counted, field, lost)
		}
	}
}

const (
	keptLabels   = 20 // distinct values of each
	usualKeys    = 8
	numberedKeys = 5 // of them
	mostMistaken = 3 // spans of values that are mistaken for earlier ones
)

func usualKey(i int) span.Key {
	return span.Key{
		Service: "shop", Operation: "web.request", Resource: fmt.Sprint("GET /page/", i),
		Kind: "client", PeerTags: []string{"host:db-1"},
	}
}

func nameOf(k *span.Key) string { return fmt.Sprint(k.Service, k.Operation, k.Resource, k.PeerTags) }

// floods generates batches, and models the rows of their keys for small label budgets.
type floods struct {
	rnd    *rand.Rand
	differ int // bits: the labels in which the keys of the flood differ
	of     int // so many keys the usual ones are 8
	serial uint32
	values map[span.Label][]string
	seen   map[span.Label]map[string]bool // pending
	want   map[string]uint64              // spans by key
	lost   map[span.Label]uint64
}

func (f *floods) batch() []byte {
	n := 1 + f.rnd.IntN(300)
	return bodyOf(n, func(_ int, frame []byte) []byte {
		number := f.rnd.IntN(f.of)
		key := f.key(number)
		if weight, end := 1+float64(f.rnd.IntN(50)/49), time.Now().UnixNano(); number < numberedKeys &&
			f.rnd.IntN(2) == 0 {
			frame = wire.AppendNumbered(frame, uint32(number), 1000, end, 0, weight)
		} else {
			frame = wire.AppendWhole(frame, wire.AppendKey(nil, &key), 1000, end, 0, weight)
		}
		key.Service = f.keep(span.LabelService, key.Service)
		key.Operation = f.keep(span.LabelOperation, key.Operation)
		key.Resource = f.keep(span.LabelResource, key.Resource)
		key.PeerTags[0] = "host:" + f.keep(span.LabelPeerTag, key.PeerTags[0][len("host:"):])
		f.want[nameOf(&key)]++
		return frame
	})
}

func (f *floods) key(number int) span.Key {
	key := usualKey(number)
	if number < usualKeys {
		return key
	}
	for i, label := range []*string{&key.Service, &key.Operation, &key.Resource, &key.PeerTags[0]} {
		if f.serial++; f.differ&(1<<i) != 0 {
			*label = []string{"service-", "operation.", "GET /page/", "host:"}[i] +
				fmt.Sprintf("%08x", f.serial*2654435761)
		}
	}
	return key
}

// keep returns value if the model keeps it, and span.Blocked otherwise. Half of the kept values are
// kept at their first use, the others at their second.
func (f *floods) keep(field span.Label, value string) string {
	if f.seen[field] == nil {
		f.seen[field] = map[string]bool{}
	}
	values, seen := f.values[field], f.seen[field]
	switch {
	case slices.Contains(values, value):
		return value
	case len(values) == keptLabels || len(values) >= keptLabels/2 && !seen[value]:
		seen[value] = true
		f.lost[field]++
		return span.Blocked
	}
	f.values[field] = append(values, value)
	return value
}
