package ingest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/routing"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// skewedFrame returns a frame of 300 spans: 180 with the hot resource, the others with 120
// different ones. It also returns the number of spans by resource.
func skewedFrame(hot string, turn int) (frame []byte, has map[string]uint64) {
	const n = 300
	has = map[string]uint64{}
	frame = wire.BeginSpans(nil)
	for i := range n {
		resource := hot
		if i%5 >= 3 {
			resource = fmt.Sprint("r", (turn+i)%120)
		}
		has[resource]++
		frame = wire.AppendWhole(frame, key(resource), 1e6, time.Now().UnixNano(), 0, 1)
	}
	wire.EndSpans(frame, 0, n)
	return frame, has
}

// isSplit reports whether, in the last cycle of the balancer, the busiest partition had most of
// the traffic and was split, and the drainers had equal loads.
func isSplit(s routing.Stats) bool {
	return s.LoadRatio < 1.25 && len(s.Busiest) > 0 && s.Busiest[0].Share > 0.5 &&
		len(s.Busiest[0].Owners) == 2
}

// TestHotKey_IsSplit sends skewed traffic faster than the drainers count, until the balancer has
// split the hot key and the drainers have equal loads. Then another key becomes hot. No span is
// lost or counted under another key. The balancer runs after a number of spans, independent of
// time.
func TestHotKey_IsSplit(t *testing.T) {
	looks := make(chan time.Time)
	h := start(t, func(c *configs, a *aggregate.Config) {
		c.Block = true
		a.Drainers, a.RebalanceTicks = 2, looks
	})
	var mu sync.Mutex
	sent := map[string]uint64{}
	var hot atomic.Value
	hot.Store("hot 0")
	var done atomic.Bool
	var sending sync.WaitGroup
	for range 3 {
		c := h.connect("shop")
		sending.Go(func() {
			for turn := 0; !done.Load(); turn += 7 {
				frame, has := skewedFrame(hot.Load().(string), turn)
				c.send(frame)
				mu.Lock()
				for resource, n := range has {
					sent[resource] += n
				}
				mu.Unlock()
			}
			c.settle()
		})
	}
	look := func() routing.Stats {
		const enough = 100_000 // number of spans after which the balancer acts
		before := h.Stats().Received
		eventually.True(t, "more spans come", func() bool { return h.Stats().Received >= before+enough })
		began := time.Now()
		looks <- began
		eventually.True(t, "the balancer has looked", func() bool {
			return h.aggregator.Stats().Partitions.LastPlan.At.After(began)
		})
		return h.aggregator.Stats().Partitions
	}
	for _, next := range []string{"hot 1", "hot 2", "hot 3"} {
		hot.Store(next)
		look() // look at the previous cycle and the next one
		s := look()
		for most := 10; !isSplit(s); s = look() {
			if most--; most == 0 {
				t.Fatalf("%s is not split: %+v", next, s)
			}
		}
	}
	done.Store(true)
	sending.Wait()
	s := h.aggregator.Stats().Partitions
	if s.Partitions != 128 {
		t.Errorf("%d partitions for some 120 aggregates, want 128", s.Partitions)
	}
	h.stop()
	for resource, n := range sent {
		if h.rows[resource] != n {
			t.Errorf("%q was counted %d times, and sent %d times", resource, h.rows[resource], n)
		}
	}
	if n := h.dropped(); n != 0 {
		t.Errorf("%d dropped", n)
	}
}
