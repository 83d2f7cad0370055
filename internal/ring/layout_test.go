package ring

import (
	"testing"
	"unsafe"
)

// TestLayout: what different threads write stands two cache lines apart, and
// slots begin on a line.
func TestLayout(t *testing.T) {
	var s sequence
	offsets := []struct {
		name       string
		start, end uintptr
	}{
		{"fixed", unsafe.Offsetof(s.fixed), unsafe.Offsetof(s.fixed) + unsafe.Sizeof(s.fixed)},
		{
			"producers", unsafe.Offsetof(s.producers),
			unsafe.Offsetof(s.producers) + unsafe.Sizeof(s.producers),
		},
		{"consumer", unsafe.Offsetof(s.consumer), unsafe.Offsetof(s.consumer) + unsafe.Sizeof(s.consumer)},
		{"parking", unsafe.Offsetof(s.parking), unsafe.Offsetof(s.parking) + unsafe.Sizeof(s.parking)},
		{"counters", unsafe.Offsetof(s.counters), unsafe.Offsetof(s.counters) + unsafe.Sizeof(s.counters)},
		{"mailbox", unsafe.Offsetof(s.mailbox), unsafe.Offsetof(s.mailbox) + unsafe.Sizeof(s.mailbox)},
	}
	for i := 1; i < len(offsets); i++ {
		if gap := offsets[i].start - offsets[i-1].start; gap < apart {
			t.Errorf("%s begins %d bytes behind %s, want %d", offsets[i].name, gap, offsets[i-1].name, apart)
		}
	}
	if offsets[0].start < apart || unsafe.Sizeof(s)-offsets[len(offsets)-1].end < line {
		t.Error("a neighbour in memory shares a line")
	}
	for _, slots := range []int{1, 2, 64} {
		r, err := New[[14]uint64](slots)
		if err != nil {
			t.Fatal(err)
		}
		if at := uintptr(unsafe.Pointer(&r.slots[0])); at%line != 0 {
			t.Errorf("the first of %d slots is %d bytes behind a line's start", slots, at%line)
		}
	}
}

// TestAllocations: publish and consume set nothing aside. (Both run here on one
// goroutine, so a turn is taken by hand.)
func TestAllocations(t *testing.T) {
	r, err := New[[14]uint64](256)
	if err != nil {
		t.Fatal(err)
	}
	at := r.head.Load()
	seen := 0
	take := func(slots [][14]uint64) { seen += len(slots) }
	if n := testing.AllocsPerRun(1000, func() {
		for _, size := range []int{1, 16, 64} {
			c, _ := r.Claim(size)
			c.Slot(0)[0] = 7
			c.Publish()
		}
		c, _ := r.Claim(3)
		c.Skip()
		func() {
			c, _ := r.Claim(3)
			defer c.Abandon()
			c.Slot(2)[0] = 7
			c.Publish()
		}()
		at = r.turn(at, 1000, take)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if seen == 0 {
		t.Error("nothing was consumed")
	}
}
