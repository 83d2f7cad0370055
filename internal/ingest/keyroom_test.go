package ingest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// longKey returns a key of about 4,000 bytes.
func longKey(i uint32) []byte { return key(longName(i)) }

func longName(i uint32) string { return fmt.Sprint(strings.Repeat("n", 4000), i) }

// TestKeyMemory_WithinWelcomeKeepsLabels checks that keys within the limits of the
// welcome keep their labels.
func TestKeyMemory_WithinWelcomeKeepsLabels(t *testing.T) {
	h := start(t, func(c *configs, _ *aggregate.Config) { c.MaxKeyBytes = 256 << 10 })
	c := h.dial()
	c.send(hello("shop"))
	_, body := c.read()
	welcome, err := wire.DecodeWelcome(body)
	if err != nil || welcome.MaxKeyBytes < wire.MinMaxKeyBytes {
		t.Fatalf("%+v, %v", welcome, err)
	}
	for i := range uint32(200) {
		c.send(spans(1, key(fmt.Sprint("whole", longName(i)))))
	}
	numbers, cost := uint32(0), 0
	for ; cost+wire.KeyCost(len(longKey(numbers))) <= welcome.MaxKeyBytes; numbers++ {
		c.send(define(numbers, longKey(numbers)))
		cost += wire.KeyCost(len(longKey(numbers)))
	}
	for i := range numbers {
		c.send(numbered(i, i))
	}
	c.settle()
	h.stop()
	if n := h.Stats().KeysUnnumbered; n != 0 || numbers < 40 {
		t.Errorf("%d of %d keys found no room", n, numbers)
	}
	for i := range numbers {
		if h.rows[longName(i)] != 2 {
			t.Errorf("key %d is counted %d times", i, h.rows[longName(i)])
		}
	}
}

// TestKeyMemory_FullLosesOnlyLabels checks that spans of a key that exceeds the key memory
// are counted under their origin, and get their labels back when memory is free.
func TestKeyMemory_FullLosesOnlyLabels(t *testing.T) {
	h := start(t, func(c *configs, _ *aggregate.Config) {
		c.MaxKeyBytes, c.MaxKeyBytesInAll = 256<<10, 256<<10
	})
	greedy, late := h.connect("greedy"), h.connect("late")
	for i := range uint32(100) {
		greedy.send(define(i, longKey(i)))
		greedy.send(numbered(i))
	}
	eventually.True(t, "all of the first is counted", func() bool { return h.Stats().Received == 100 })
	unnumbered := h.Stats().KeysUnnumbered
	late.send(define(0, longKey(0)))
	late.send(define(8000, longKey(1))) // the table up to this number does not fit either
	late.send(numbered(0, 8000, 8000))
	eventually.True(t, "the second is counted too", func() bool { return h.Stats().Received == 103 })
	greedy.settle()
	eventually.True(t, "its room is free", func() bool { return h.Stats().Connections == 1 })
	late.send(define(0, longKey(200)))
	late.send(define(8000, longKey(201)))
	late.send(numbered(0, 8000))
	late.settle()
	h.stop()
	stats := h.Stats()
	if unnumbered < 10 || stats.KeysUnnumbered != unnumbered+2 || stats.DroppedTotal() != 0 {
		t.Errorf("%d keys found no room, %d of the first; dropped %v", stats.KeysUnnumbered, unnumbered,
			stats.Dropped)
	}
	nameless := h.rows[span.Blocked]
	if nameless != unnumbered+3 || stats.Collapsed["whole_key"] != nameless {
		t.Errorf("%d spans are counted without names, %d keys of the first found no room; collapsed %v",
			nameless, unnumbered, stats.Collapsed)
	}
	if h.rows[longName(200)] != 1 || h.rows[longName(201)] != 1 {
		t.Errorf("with room, they are counted %d and %d times", h.rows[longName(200)], h.rows[longName(201)])
	}
}
