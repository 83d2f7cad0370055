package ingest

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

func TestBatch_MaximumSizeIsAdmitted(t *testing.T) {
	for _, slots := range []int{1024, 2048, 8192} {
		h := start(t, func(c *configs, a *aggregate.Config) {
			c.Block, c.MaxBatch, a.RingSlots = true, 1024, slots
		})
		c := h.dial()
		c.send(hello("web"))
		_, body := c.read()
		welcome, err := wire.DecodeWelcome(body)
		if err != nil {
			t.Fatal(err)
		}
		if welcome.MaxBatch != 1024 {
			t.Errorf("with %d slots tracers get a batch limit of %d", slots, welcome.MaxBatch)
		}
		for range 3 {
			c.send(weighted(welcome.MaxBatch))
		}
		c.settle()
		h.stop()
		if stats := h.Stats(); stats.DroppedTotal() != 0 || h.rows["r"] != 3*1024 {
			t.Errorf("with %d slots %v were dropped, counted %v", slots, stats.Dropped, h.rows)
		}
	}
}

// weighted returns a message of n spans with weight two.
func weighted(n int) []byte {
	frame := wire.BeginSpans(nil)
	for range n {
		frame = wire.AppendWhole(frame, key("r"), 5, time.Now().UnixNano(), 0, 2)
	}
	wire.EndSpans(frame, 0, n)
	return frame
}

// TestAges_SampledAcrossBatches checks that the age of one span in 1,024 is recorded, across batches.
func TestAges_SampledAcrossBatches(t *testing.T) {
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

// TestFlood_CostsOthersNothing checks that three clients that send as fast as they can over real
// sockets, with default limits, don't cause losses for another client.
func TestFlood_CostsOthersNothing(t *testing.T) {
	h := start(t, nil)
	var flooding sync.WaitGroup
	var done atomic.Bool
	for i := range 3 {
		c := h.connect(fmt.Sprint("flood", i))
		flooding.Go(func() {
			for frame := spans(64, key("flood")); !done.Load(); {
				if _, err := c.Write(frame); err != nil {
					t.Error(err)
					return
				}
			}
			c.settle()
		})
	}
	healthy := h.connect("healthy")
	// The spans that a client sends before the drainer has processed the previous ones are within
	// its share of the ring, regardless of the drainer's delay.
	const rounds, frames, batch = 60, 24, 16
	sent := uint64(0)
	r := h.aggregator.Ring(0)
	passed := func() { // waits until the ring has been drained
		end := r.Drained() + uint64(r.Stats().Used)
		eventually.True(t, "what is in the ring is drained", func() bool { return r.Drained() >= end })
	}
	passed() // the first client has had the ring to itself
	for range rounds {
		for range frames {
			healthy.send(spans(batch, key("healthy")))
		}
		sent += frames * batch
		eventually.True(t, "all of the healthy one is received", func() bool {
			return slices.ContainsFunc(h.Tracers(), func(tr Tracer) bool {
				return tr.Service == "healthy" && tr.Received == sent
			})
		})
		passed()
	}
	healthy.settle()
	done.Store(true)
	flooding.Wait()
	h.stop()
	if got := h.rows["healthy"]; got != sent {
		t.Errorf("the healthy tracer was counted %d of %d; dropped %v", got, sent, h.Stats().Dropped)
	}
}
