//go:build !race

package ingest

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// warm is a connection in a cycle that knows its keys, and a batch of them by
// bytes and by number. (The race detector's own bookkeeping allocates.)
func warm(t testing.TB) (*conn, [][]byte) {
	h := newHarness(t, func(_ *Config, a *aggregate.Config) { a.Drainers = 2 })
	h.features.Stats = true
	h.Server.features.Store(&h.features)
	c := &conn{admission: admission{server: h.Server}}
	c.enter()
	whole, numbered := wire.BeginSpans(nil), wire.BeginSpans(nil)
	for i := range 64 {
		raw := key(fmt.Sprint("resource ", i))
		body := define(uint32(i), raw)[wire.HeaderLen:]
		_, body, _ = wire.Split(body)
		if err := c.define(body); err != nil {
			t.Fatal(err)
		}
		whole = wire.AppendWhole(whole, raw, 1e6, 1e18, 1, 1)
		numbered = wire.AppendNumbered(numbered, uint32(i), 1e6, 1e18, 0, 1)
	}
	wire.EndSpans(whole, 0, 64)
	wire.EndSpans(numbered, 0, 64)
	h.aggregator.Start()
	t.Cleanup(func() {
		c.leave()
		h.aggregator.Stop()
		h.listener.Close()
	})
	return c, [][]byte{whole[wire.HeaderLen:], numbered[wire.HeaderLen:]}
}

func TestAllocationsOfAHit(t *testing.T) {
	c, messages := warm(t)
	// The drainers run beside the measurement and are counted with it, so they
	// must have opened their rows and sketches.
	for _, message := range messages {
		if _, err := c.handle(message); err != nil {
			t.Fatal(err)
		}
	}
	for stats := c.server.config.Aggregator.Stats(); stats.Aggregated() < 128; {
		runtime.Gosched()
		stats = c.server.config.Aggregator.Stats()
	}
	for i, message := range messages {
		if n := testing.AllocsPerRun(500, func() {
			if _, err := c.handle(message); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("message %d: %v allocations a batch of 64", i, n)
		}
	}
}
