package admit

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// TestSnapshots_AllForms publishes batches that mix all forms of snapshots, through 1 to 40
// drainers, and compares the statistics of each key with a map.
func TestSnapshots_AllForms(t *testing.T) {
	for seed := range uint64(30) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		got := map[string]aggregate.Counts{}
		var spans uint64
		h := newHarness(t, func(_ *Config, a *aggregate.Config) {
			a.Drainers = []int{1, 2, 3, 40}[rnd.IntN(4)]
			a.Deliver = func(s *aggregate.Sealed) {
				for part := range s.Parts {
					sum, counts := got[s.Keys[part.Key].Key.Resource], part.Counts()
					sum.Add(&counts)
					got[s.Keys[part.Key].Key.Resource] = sum
					spans += counts.Spans
				}
				s.Delivery.Resolve(nil)
				s.Release()
			}
		})
		h.aggregator.Start()
		p := h.NewPublisher(span.Origin{Service: "web"})
		for number := range uint32(10) {
			if err := p.Define(number, key(fmt.Sprint("numbered ", number))); err != nil {
				t.Fatal(err)
			}
		}
		want, sent := map[string]aggregate.Counts{}, uint64(0)
		for range 20 {
			body, counted := mixedBatch(rnd, want)
			sent += counted
			if reason, ok := h.offer(p, body); !ok {
				t.Fatalf("a batch was refused as %s", reason)
			}
			if p.snapshot.Key != nil {
				t.Fatal("a publisher keeps the message of which it read a snapshot")
			}
		}
		p.Close()
		h.aggregator.Stop()
		for resource, counts := range want {
			if got[resource] != counts {
				t.Errorf("seed %d: %s counts %+v, want %+v", seed, resource, got[resource], counts)
			}
		}
		stats := h.aggregator.Stats()
		if len(got) != len(want) || spans != sent || stats.Aggregated() != sent {
			t.Errorf("seed %d: %d keys of %d, and %d spans of %d", seed, len(got), len(want), spans, sent)
		}
	}
}

// mixedBatch returns the body of a batch and adds its spans to the expected counts.
func mixedBatch(rnd *rand.Rand, counted map[string]aggregate.Counts) (body []byte, spans uint64) {
	n := 1 + rnd.IntN(300)
	weighted := rnd.IntN(3) // none, some, most
	now := time.Now().UnixNano()
	return bodyOf(n, func(_ int, frame []byte) []byte {
		duration, end, flags, weight := uint64(1e6+rnd.IntN(1e9)), now, span.Flags(rnd.IntN(4)), 1.0
		switch rnd.IntN(10) {
		case 0:
			duration = uint64(rnd.IntN(2)) * math.MaxUint32 * 1000 // nothing, or more than an hour
		case 1:
			end = int64(rnd.Uint64()) // any time
		}
		if rnd.IntN(3) < weighted {
			weight = float64(1+rnd.IntN(16)) / 4 // so that sums are exact
		}
		resource := fmt.Sprint("r", rnd.IntN(20))
		if rnd.IntN(2) == 0 {
			number := uint32(rnd.IntN(10))
			resource = fmt.Sprint("numbered ", number)
			frame = wire.AppendNumbered(frame, number, duration, end, flags, weight)
		} else {
			frame = wire.AppendWhole(frame, key(resource), duration, end, flags, weight)
		}
		one := aggregate.Counts{Spans: 1, Hits: weight, Duration: float64(duration) * weight}
		if flags&span.Error != 0 {
			one.Errors = weight
		}
		if flags&span.TopLevel != 0 {
			one.TopLevel = weight
		}
		sum := counted[resource]
		sum.Add(&one)
		counted[resource] = sum
		return frame
	}), uint64(n)
}

// TestWeight_TakesOneSlot: a batch of as many snapshots as a ring has slots is admitted whatever
// their weights are, and a larger batch is not.
func TestWeight_TakesOneSlot(t *testing.T) {
	h := newHarness(t, func(c *Config, a *aggregate.Config) {
		c.Block, c.MaxBatch, a.RingSlots = true, 512, 256
	})
	h.aggregator.Start()
	p := h.NewConnection(span.Origin{Service: "web"}, 0)
	for _, n := range []int{128, 256, 257, 256} {
		weighted := bodyOf(n, func(_ int, frame []byte) []byte {
			return wire.AppendWhole(frame, key("r"), math.MaxUint64, time.Now().UnixNano(), 0, 2.5)
		})
		if err := p.Publish(weighted); err != nil {
			t.Fatal(err)
		}
	}
	h.stop(p)
	if stats := h.Stats(); stats.Dropped["batch_too_large"] != 257 || h.rows["r"] != 128+256+256 {
		t.Errorf("dropped %v, counted %v", stats.Dropped, h.rows)
	}
}

// TestBatch_MalformedIsDropped: a malformed batch counts as dropped, and nothing is
// published.
func TestBatch_MalformedIsDropped(t *testing.T) {
	h := newHarness(t, nil)
	p := h.NewConnection(span.Origin{Service: "web"}, 0)
	complete := spans(3, key("r"))
	for _, body := range [][]byte{complete[:len(complete)-1], numbered(7), spans(2, []byte("no key"))} {
		if err := p.Publish(body); !errors.Is(err, wire.ErrMalformed) && len(body) == len(complete)-1 ||
			err == nil {
			t.Errorf("%x: %v", body, err)
		}
	}
	h.finish(p)
	if stats := h.Stats(); stats.Dropped["malformed"] != 3+1+2 || h.counted() != 0 {
		t.Errorf("dropped %v, counted %v", stats.Dropped, h.rows)
	}
}

// TestKey_WithinBudgetIsAdmittedOnce: a working set within its budgets is admitted once,
// however large it is. Only a few of the keys that lose a label are cached.
func TestKey_WithinBudgetIsAdmittedOnce(t *testing.T) {
	const set = 1000
	for _, budget := range []int{3 * set, 256} {
		h := newHarness(t, func(_ *Config, a *aggregate.Config) { a.Budgets[span.LabelResource] = budget })
		h.aggregator.Start()
		p := h.NewPublisher(span.Origin{Service: "web"})
		for range 2 {
			for i := range set {
				h.offer(p, spans(1, key(fmt.Sprint(i))))
			}
		}
		h.stop(p)
		decoded := h.Stats().KeysDecoded
		if isKept := decoded == set; isKept != (budget == 3*set) || h.counted() != 2*set {
			t.Errorf("with a budget of %d keys were admitted %d times for a set of %d twice", budget, decoded,
				set)
		}
	}
}
