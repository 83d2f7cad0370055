package ingest

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/eventually"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// TestAFlushEndsWithItsConnection: tracers that fill their key tables, ask for as many
// flushes as they may and leave before an answer leave neither goroutines nor memory.
func TestAFlushEndsWithItsConnection(t *testing.T) {
	const visits, keys = 40, 200
	var asked, waiting atomic.Int64
	h := newHarness(t, func(c *configs, _ *aggregate.Config) {
		c.MaxKeyBytes, c.MaxKeyBytesInAll = 4<<20, 4<<20
	})
	h.config.Report = func(ctx context.Context) error { // an agent that never answers
		asked.Add(1)
		waiting.Add(1)
		defer waiting.Add(-1)
		<-ctx.Done()
		return ctx.Err()
	}
	h.aggregator.Start()
	h.Start()
	t.Cleanup(h.stop)
	long := strings.Repeat("x", 4000)
	visit := func() {
		c := h.connect("visitor")
		for number := range uint32(keys) {
			c.send(define(number, key(fmt.Sprint(long, number))))
		}
		before := asked.Load()
		for id := range uint64(maxOpenFlushes) {
			c.send(wire.AppendFlush(nil, &wire.Flush{ID: id}))
		}
		eventually.True(t, "all flushes wait", func() bool { return asked.Load() == before+maxOpenFlushes })
		c.Close()
		eventually.True(t, "the connection is gone", func() bool { return h.Stats().Connections == 0 })
		if open := waiting.Load(); open != 0 {
			t.Fatalf("%d flushes outlive their connection", open)
		}
	}
	visit()
	before := heapInUse()
	for range visits {
		visit()
	}
	if grown := heapInUse() - before; grown > 4<<20 {
		t.Errorf("%d visits left %d bytes", visits, grown)
	}
}

func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
