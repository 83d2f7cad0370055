package ingest

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// TestFlush_EndsWithConnection checks that clients that leave without waiting for flush replies
// leave no goroutines.
func TestFlush_EndsWithConnection(t *testing.T) {
	const keys = 200
	var asked, waiting atomic.Int64
	h := newHarness(t, func(c *configs, _ *aggregate.Config) {
		c.MaxKeyBytes, c.MaxKeyBytesInAll = 4<<20, 4<<20
	})
	h.config.Deliver = func(ctx context.Context) error { // like an agent that does not respond
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
		for id := range uint64(maxPendingFlushes) {
			c.send(wire.AppendFlush(nil, &wire.Flush{ID: id}))
		}
		eventually.True(t, "all flushes wait", func() bool { return asked.Load() == before+maxPendingFlushes })
		c.Close()
		eventually.True(t, "the connection is closed", func() bool { return h.Stats().Connections == 0 })
		if open := waiting.Load(); open != 0 {
			t.Fatalf("%d flushes outlive their connection", open)
		}
	}
	for range 3 {
		visit()
	}
}

// TestFlush_AnsweredAfterHalfClose checks that a client that has ended its messages still receives the reply
// to its flush, and that the connection then ends.
func TestFlush_AnsweredAfterHalfClose(t *testing.T) {
	for name, done := range map[string]func(c *tracer){
		"bye":      func(c *tracer) { c.send(wire.AppendBye(nil, &wire.Bye{})) },
		"shutdown": func(c *tracer) { _ = c.CloseWrite() },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, nil)
			h.config.Deliver = func(ctx context.Context) error {
				select {
				case <-ctx.Done(): // immediately if the end of the messages ends the connection
					return ctx.Err()
				case <-time.After(200 * time.Millisecond):
					return h.report(ctx)
				}
			}
			h.run(nil)
			c := h.connect("job")
			c.send(spans(3, key("r")))
			for id := range uint64(2) {
				c.send(wire.AppendFlush(nil, &wire.Flush{ID: id}))
			}
			done(c)
			ids := map[uint64]bool{}
			for kind, body := c.read(); kind != 0; kind, body = c.read() {
				answer, err := wire.DecodeFlush(body)
				if kind != wire.TypeFlush || err != nil || !answer.OK {
					t.Fatalf("read %s: %+v, %v", kind, answer, err)
				}
				ids[answer.ID] = true
			}
			if len(ids) != 2 {
				t.Errorf("answered are %v of two", ids)
			}
			eventually.True(t, "the connection is closed", func() bool { return h.Stats().Connections == 0 })
			h.stop()
			if h.rows["r"] != 3 {
				t.Errorf("%d spans arrived", h.rows["r"])
			}
		})
	}
}

// TestFlush_PendingDelaysNoShutdown checks that a pending flush does not delay the end of a
// connection or a shutdown.
func TestFlush_PendingDelaysNoShutdown(t *testing.T) {
	h := newHarness(t, nil)
	var asked atomic.Int64
	h.config.Deliver = func(ctx context.Context) error { // like an agent that does not respond
		asked.Add(1)
		<-ctx.Done()
		return ctx.Err()
	}
	h.run(nil)
	leaves, stays := h.connect("leaves"), h.connect("stays")
	for _, c := range []*tracer{leaves, stays} {
		c.send(wire.AppendFlush(nil, &wire.Flush{ID: 1}))
		c.send(wire.AppendBye(nil, &wire.Bye{}))
	}
	eventually.True(t, "both flushes wait", func() bool { return asked.Load() == 2 })
	leaves.Close()
	eventually.True(t, "one connection is closed", func() bool { return h.Stats().Connections == 1 })
	h.stop()
	if kind, _ := stays.read(); kind != 0 && kind != wire.TypeBye {
		t.Errorf("the other connection gets %s", kind)
	}
}
