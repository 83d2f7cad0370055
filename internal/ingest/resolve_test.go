package ingest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// TestShapesOfSnapshots publishes batches of every shape in which a snapshot can come,
// mixed, through one to forty drainers, and expects of each key what a map has counted.
func TestShapesOfSnapshots(t *testing.T) {
	for seed := range uint64(30) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		got := map[string]aggregate.Counts{}
		var spans uint64
		h := newHarness(t, func(_ *Config, a *aggregate.Config) {
			a.Drainers = []int{1, 2, 3, 40}[rnd.IntN(4)]
			a.LimitDrainers()
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
		h.Server.features.Store(&wire.Features{Stats: true})
		h.aggregator.Start()
		p := h.NewPublisher(span.Origin{Service: "web"})
		for number := range uint32(10) {
			if err := p.learn(number, key(fmt.Sprint("numbered ", number))); err != nil {
				t.Fatal(err)
			}
		}
		want, sent := map[string]aggregate.Counts{}, uint64(0)
		for range 20 {
			body, counted := mixedBatch(rnd, want)
			sent += counted
			if reason, ok := p.Publish(body); !ok {
				t.Fatalf("a batch was refused as %s", reason)
			}
			if p.snapshot.Key != nil {
				t.Fatal("a publisher keeps the message of which it read a snapshot")
			}
		}
		p.Close()
		h.aggregator.Stop()
		h.Close()
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

// mixedBatch is the body of a batch, whose spans it counts.
func mixedBatch(rnd *rand.Rand, counted map[string]aggregate.Counts) (body []byte, spans uint64) {
	n := 1 + rnd.IntN(300)
	weighted := rnd.IntN(3) // none, some, most
	frame := wire.BeginSpans(nil)
	now := time.Now().UnixNano()
	for range n {
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
	}
	wire.EndSpans(frame, 0, n)
	_, body, err := wire.Split(frame[wire.HeaderLen:])
	if err != nil {
		panic(err)
	}
	return body, uint64(n)
}

// TestWeightedBatchLargerThanARing: such a snapshot with a weight takes two slots, so a batch
// of as many as a ring has slots is too large for it, and one of half as many is not, even
// if it is one whose end would be noted, as the first is.
func TestWeightedBatchLargerThanARing(t *testing.T) {
	h := start(t, func(c *Config, a *aggregate.Config) { c.Block, c.MaxBatch, a.RingSlots = true, 256, 256 })
	c := h.connect("web")
	for _, n := range []int{128, 256, 129} {
		c.send(weighted(n))
	}
	c.send(spans(256, key("r")))
	c.settle()
	h.stop()
	if stats := h.Stats(); stats.Dropped["batch_too_large"] != 256+129 || h.rows["r"] != 128+256 {
		t.Errorf("dropped %v, counted %v", stats.Dropped, h.rows)
	}
}

// TestWeightedBatchesOfTheWelcome are admitted, however large the ring is and the largest
// batch may be.
func TestWeightedBatchesOfTheWelcome(t *testing.T) {
	for _, slots := range []int{1024, 2048, 8192} {
		h := start(t, func(c *Config, a *aggregate.Config) { c.Block, c.MaxBatch, a.RingSlots = true, 1024, slots })
		c := h.dial()
		c.send(hello("web"))
		_, body := c.read()
		welcome, err := wire.DecodeWelcome(body)
		if err != nil {
			t.Fatal(err)
		}
		if want := max(256, min(1024, (slots-2)/4)); welcome.MaxBatch != want {
			t.Errorf("with %d slots tracers are told batches of %d, want %d", slots, welcome.MaxBatch, want)
		}
		for range 3 {
			c.send(weighted(welcome.MaxBatch))
		}
		c.settle()
		h.stop()
		if stats := h.Stats(); stats.DroppedTotal() != 0 || h.rows["r"] != 3*uint64(welcome.MaxBatch) {
			t.Errorf("with %d slots %v were dropped, counted %v", slots, stats.Dropped, h.rows)
		}
	}
}

// weighted is a message of so many snapshots that weigh two.
func weighted(n int) []byte {
	frame := wire.BeginSpans(nil)
	for range n {
		frame = wire.AppendWhole(frame, key("r"), 5, time.Now().UnixNano(), 0, 2)
	}
	wire.EndSpans(frame, 0, n)
	return frame
}

// TestWeightedBatchKeepsItsScratch: the room that it needs is what memory.go says, and so
// is not let go of.
func TestWeightedBatchKeepsItsScratch(t *testing.T) {
	h := newHarness(t, nil)
	h.Server.features.Store(&wire.Features{Stats: true})
	h.aggregator.Start()
	p := h.NewPublisher(span.Origin{Service: "a"})
	for range 3 {
		_, body, err := wire.Split(weighted(h.config.MaxBatch)[wire.HeaderLen:])
		if err != nil {
			t.Fatal(err)
		}
		if reason, ok := p.Publish(body); !ok {
			t.Fatalf("refused as %s", reason)
		}
		if got, most := len(p.batch.slots), mostRoom(h.config.MaxBatch, h.aggregator.Drainers()); got == 0 || got > most {
			t.Errorf("room for %d slots, want no more than %d", got, most)
		}
	}
	p.Close()
	h.stop()
}

// TestEndsAreNotedOnceInAWhile, in batches of any size.
func TestEndsAreNotedOnceInAWhile(t *testing.T) {
	h := start(t, nil)
	c := h.connect("web")
	for range 30 {
		c.send(spans(500, key("r")))
	}
	c.settle()
	h.stop()
	noted := uint64(0)
	ages := h.aggregator.Stats().Ages
	for _, n := range ages.Counts {
		noted += n
	}
	if noted != 15_000/1024+1 || ages.Highest > 60 {
		t.Errorf("of 15000 spans %d were %v s old at the most", noted, ages.Highest)
	}
}

// TestEndsOfTheLargestBatches: even those of the welcome that a small ring hardly holds have
// room for a note of when one of their spans ended.
func TestEndsOfTheLargestBatches(t *testing.T) {
	h := start(t, func(c *Config, a *aggregate.Config) { c.Block, a.RingSlots = true, 4096 })
	c := h.connect("web")
	for range 20 {
		c.send(spans(h.config.largestBatch(), key("r")))
	}
	c.settle()
	h.stop()
	ages, stats := uint64(0), h.aggregator.Stats()
	for _, n := range stats.Ages.Counts {
		ages += n
	}
	if spans := stats.Aggregated(); ages < spans/ageEvery-1 {
		t.Errorf("%d ages of %d spans", ages, spans)
	}
}

const ageEvery = 1024
