package admit

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// TestKeyMemory_BoundedAndShared charges and releases memory at random, for the maximum number of
// connections and some other publishers. It verifies that their total never exceeds the limit, and
// that each connection can always get its share.
func TestKeyMemory_BoundedAndShared(t *testing.T) {
	rnd := rand.New(rand.NewPCG(4, 4))
	const bytes, connections = 100_000, 10
	memory := newKeyMemory(bytes, connections)
	shares := make([]keyShare, connections+3)
	for i := range shares {
		shares[i].memory = &memory
		if i < connections {
			shares[i].reserved = memory.share
		}
	}
	refused := 0
	for step := range 100_000 {
		i := rnd.IntN(1 + rnd.IntN(len(shares))) // the first ones flood
		if rnd.IntN(500) == 0 {
			shares[i].shrink(rnd.IntN(shares[i].charged + 1))
			continue
		}
		cost, use := 1+rnd.IntN(300), chargeReason(rnd.IntN(2))
		before := shares[i].charged
		ok := shares[i].charge(cost, use)
		switch {
		case ok && shares[i].charged != before+cost, !ok && shares[i].charged != before:
			t.Fatalf("step %d: %d bytes were asked for, and %d became %d", step, cost, before, shares[i].charged)
		case ok:
		case i < connections && int64(before+cost) <= memory.share:
			t.Fatalf("step %d: connection %d was refused %d bytes more than its %d", step, i, cost, before)
		default:
			refused++
		}
		sum := 0
		for i := range shares {
			sum += max(shares[i].charged, int(shares[i].reserved))
		}
		if sum > bytes {
			t.Fatalf("step %d: %d bytes of %d are used or reserved", step, sum, bytes)
		}
	}
	if refused == 0 {
		t.Error("nothing was refused")
	}
	for i := range shares {
		shares[i].shrink(0)
	}
	if used := memory.taken.Load(); used != 0 {
		t.Errorf("%d bytes are used without a table", used)
	}
}

// TestKeyMemory_ScanLeavesRoomForNumbers fills the memory with keys without numbers, from several publishers,
// and then defines numbered keys on another publisher.
func TestKeyMemory_ScanLeavesRoomForNumbers(t *testing.T) {
	h := newHarness(t, func(c *Config, _ *aggregate.Config) {
		c.MaxKeyBytes, c.MaxKeyBytesInAll, c.Connections = 1<<20, 1<<20, 8
	})
	h.aggregator.Start()
	var all []*Publisher
	connect := func(service string) *Publisher {
		all = append(all, h.NewConnection(span.Origin{Service: service}, 0))
		return all[len(all)-1]
	}
	for n := range 3 {
		scanner := connect("scanner")
		for i := range 300 {
			h.offer(scanner, spans(1, key(fmt.Sprint(strings.Repeat("s", 4000), n, i))))
		}
	}
	h.offer(connect("cached"), spans(1, key(strings.Repeat("c", 4000)))) // its share takes this one
	numbers := connect("numbers")
	for i := range uint32(40) {
		if err := numbers.Define(i, key(fmt.Sprint(strings.Repeat("n", 4000), i))); err != nil {
			t.Fatal(err)
		}
	}
	h.offer(numbers, numbered(0, 39))
	h.stop(all...)
	if n := h.rows[fmt.Sprint(strings.Repeat("n", 4000), 39)]; n != 1 {
		t.Errorf("the numbered key was counted %d times", n)
	}
	if h.Stats().KeysUncached == 0 {
		t.Error("the scanners did not fill the memory")
	}
}

// TestKeyMemory_PublishersLeaveShares opens more publishers than there may be connections,
// fills the common memory, and then defines a numbered key on a connection.
func TestKeyMemory_PublishersLeaveShares(t *testing.T) {
	h := newHarness(t, func(c *Config, _ *aggregate.Config) {
		c.MaxKeyBytes, c.MaxKeyBytesInAll, c.Connections = minKeyBytes, minKeyBytes, 2
	})
	var all []*Publisher
	for i := range 3 {
		all = append(all, h.NewPublisher(span.Origin{Service: fmt.Sprint("publisher", i)}))
	}
	h.keyMemory.taken.Store(h.keyMemory.common)
	defer h.keyMemory.taken.Store(0)
	c := h.NewConnection(span.Origin{Service: "numbers"}, 0)
	if err := c.Define(0, key("numbered")); err != nil {
		t.Error(err)
	}
	h.offer(c, numbered(0))
	h.finish(append(all, c)...)
	if h.rows["numbered"] != 1 {
		t.Errorf("the numbered key was counted %d times", h.rows["numbered"])
	}
}

// numbered returns the body of a batch with one snapshot per number.
func numbered(numbers ...uint32) []byte {
	return bodyOf(len(numbers), func(i int, frame []byte) []byte {
		return wire.AppendNumbered(frame, numbers[i], 1000, time.Now().UnixNano(), 0, 1)
	})
}
