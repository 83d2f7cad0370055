//go:build !race

package ingest

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// warm returns a connection that has defined its keys, and two messages with these keys: written
// out, and by number.
func warm(t testing.TB) (*harness, *conn, [][]byte) {
	h := newHarness(t, func(_ *configs, a *aggregate.Config) { a.Drainers = 2 })
	c := &conn{shared: &h.shared, frames: &frameReader{}, publisher: h.admit.NewConnection(span.Origin{}, 0)}
	keyed, numbered := wire.BeginSpans(nil), wire.BeginSpans(nil)
	for i := range 64 {
		raw := key(fmt.Sprint("resource ", i))
		body := define(uint32(i), raw)[wire.HeaderLen:]
		_, body, _ = wire.Split(body)
		if err := c.defineKeys(body); err != nil {
			t.Fatal(err)
		}
		keyed = wire.AppendWhole(keyed, raw, 1e6, 1e18, 1, 1)
		numbered = wire.AppendNumbered(numbered, uint32(i), 1e6, 1e18, 0, 1)
	}
	wire.EndSpans(keyed, 0, 64)
	wire.EndSpans(numbered, 0, 64)
	h.aggregator.Start()
	t.Cleanup(func() {
		c.releaseResources()
		h.aggregator.Stop()
		h.Abandon()
	})
	return h, c, [][]byte{keyed[wire.HeaderLen:], numbered[wire.HeaderLen:]}
}

func TestAllocations_Hit(t *testing.T) {
	h, c, messages := warm(t)
	// The drainers run concurrently and their allocations are counted too, so they must have
	// created their rows and sketches.
	for _, message := range messages {
		if _, err := c.handleMessage(message); err != nil {
			t.Fatal(err)
		}
	}
	for stats := h.aggregator.Stats(); stats.Aggregated() < 128; stats = h.aggregator.Stats() {
		runtime.Gosched()
	}
	for i, message := range messages {
		if n := testing.AllocsPerRun(500, func() {
			if _, err := c.handleMessage(message); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("message %d: %v allocations a batch of 64", i, n)
		}
	}
}

// TestAllocations_Miss sends keys that never recur, in an interval whose budgets are exhausted:
// written out, and as numbers that are used once.
func TestAllocations_Miss(t *testing.T) {
	for _, isNumbered := range []bool{false, true} {
		t.Run(fmt.Sprintf("numbered %t", isNumbered),
			func(t *testing.T) { allocationsOfAMiss(t, isNumbered) })
	}
}

func allocationsOfAMiss(t *testing.T, isNumbered bool) {
	h := newHarness(t, func(_ *configs, a *aggregate.Config) { a.Drainers = 1 })
	h.aggregator.Start()
	c := &conn{
		shared: &h.shared, frames: &frameReader{},
		publisher: h.admit.NewConnection(span.Origin{Service: "shop", Lang: "go"}, 0),
	}
	t.Cleanup(func() {
		c.releaseResources()
		h.aggregator.Stop()
		h.Abandon()
	})
	const batch = 64
	serial, messages := 0, [][]byte(nil)
	unique := func() {
		defined, message := wire.BeginDefine(nil), wire.BeginSpans(nil)
		for i := range batch {
			raw := neverAgain(serial)
			serial++
			defined = wire.AppendDefinition(defined, uint32(i), raw)
			if isNumbered {
				message = wire.AppendNumbered(message, uint32(i), 1e6, time.Now().UnixNano(), 0, 1)
			} else {
				message = wire.AppendWhole(message, raw, 1e6, time.Now().UnixNano(), 0, 1)
			}
		}
		wire.EndDefine(defined, 0, batch)
		wire.EndSpans(message, 0, batch)
		if isNumbered {
			messages = append(messages, defined[wire.HeaderLen:])
		}
		messages = append(messages, message[wire.HeaderLen:])
	}
	handle := func() {
		for first := true; first || isNumbered && len(messages)%2 != 0; first = false {
			if _, err := c.handleMessage(messages[0]); err != nil {
				t.Fatal(err)
			}
			messages = messages[1:]
		}
	}
	settled := func() {
		for {
			counted := h.aggregator.Stats()
			if counted.Aggregated()+h.dropped() >= h.Stats().Received {
				return
			}
			runtime.Gosched()
		}
	}
	for range 200 {
		unique()
		handle()
		settled()
	}
	least := math.Inf(1) // a new interval, with free budgets, may begin during a run
	for range 20 {
		unique()
		unique()
		decoded := h.Stats().KeysDecoded
		least = min(least, testing.AllocsPerRun(1, handle))
		if n := h.Stats().KeysDecoded - decoded; n != 2*64 {
			t.Fatalf("%d keys of two batches of 64 were decoded", n)
		}
		settled()
	}
	if stats := h.Stats(); least != 0 || stats.KeysUncached != 0 || stats.Collapsed["resource"] == 0 {
		t.Errorf("%v allocations a batch of 64; uncached %d, collapsed %v", least, stats.KeysUncached,
			stats.Collapsed)
	}
}

// neverAgain returns a key with unique labels.
func neverAgain(serial int) []byte {
	return wire.AppendKey(nil, &span.Key{
		Service: fmt.Sprintf("service-%012x", serial), Operation: fmt.Sprintf("operation.%012x", serial),
		Resource: fmt.Sprintf("GET /resource/%012x", serial), Type: "http", Kind: "client",
		TraceRoot: span.TraceRootFalse,
		PeerTags:  []string{fmt.Sprintf("peer.hostname:host-%012x", serial)},
	})
}
