package admit

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/ring"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// TestKey_EqualHashes: keys are compared by their bytes, not only by their hashes.
func TestKey_EqualHashes(t *testing.T) {
	k := newKeyTable(64, 1<<20, testShare(1<<30))
	one, other := []byte("one"), []byte("two")
	_, hash := k.find(other)
	first := k.add(one, hash, forUnnumberedKey)
	if index, _ := k.find(other); index != none {
		t.Fatalf("%q is found as %q", other, k.known[index].keyBytes)
	}
	if second := k.add(other, hash, forUnnumberedKey); second == first {
		t.Fatal("both keys have one place")
	} else if index, _ := k.find(other); index != second {
		t.Errorf("%q is found at %d, want %d", other, index, second)
	}
}

// TestKey_AdmittedInEachInterval: an ID is valid in one interval only, and can be another
// key's in the next.
func TestKey_AdmittedInEachInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHarness(t, nil)
		h.aggregator.Start()
		p := h.NewPublisher(span.Origin{Service: "shop"})
		publish := func(resource string) {
			if reason, ok := h.offer(p, spans(1, key(resource))); !ok {
				t.Fatalf("refused as %s", reason)
			}
		}
		publish("first of the first interval")
		time.Sleep(aggregate.DefaultConfig().FlushInterval)
		synctest.Wait() // until the sealer has started the second interval
		publish("first of the second interval")
		publish("first of the first interval")
		h.stop(p)
		if one, two := h.rows["first of the first interval"], h.rows["first of the second interval"]; one != 2 || two != 1 {
			t.Errorf("%d spans of the one key and %d of the other, want 2 and 1", one, two)
		}
	})
}

// TestSlot_HeldUntilDrained: a slot counts as held until the drainer has counted it.
func TestSlot_HeldUntilDrained(t *testing.T) {
	r, err := ring.New[aggregate.Slot](64)
	if err != nil {
		t.Fatal(err)
	}
	claim, _ := r.Claim(1)
	var s ringShare
	s.addRange(claim.End(), claim.Len(), 64)
	claim.Publish()
	if s.removeDrained(r.Drained()); s.usedSlots != 1 {
		t.Errorf("%d slots are held of an undrained slot", s.usedSlots)
	}
	r.Send(ring.Signal{Kind: ring.Stop})
	r.Consume(64, func([]aggregate.Slot) {}, func(ring.Signal) {})
	if s.removeDrained(r.Drained()); s.usedSlots != 0 {
		t.Errorf("%d slots are held of one that was drained", s.usedSlots)
	}
}
