package ring

import (
	"testing"
	"unsafe"
)

// TestLayout expects fields of different threads two cache lines apart, and slots that begin on a
// line.
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
			t.Errorf("%s begins %d bytes after %s, want %d", offsets[i].name, gap, offsets[i-1].name, apart)
		}
	}
	if offsets[0].start < apart || unsafe.Sizeof(s)-offsets[len(offsets)-1].end < line {
		t.Error("a neighbor in memory shares a line")
	}
	for _, slots := range []int{1, 2, 64} {
		r, err := New[[14]uint64](slots)
		if err != nil {
			t.Fatal(err)
		}
		if at := uintptr(unsafe.Pointer(&r.slots[0])); at%line != 0 {
			t.Errorf("the first of %d slots is %d bytes after a line's start", slots, at%line)
		}
	}
}

// TestRing_Allocations expects that publish and consume allocate nothing. Both run on one goroutine
// here, so the test consumes by itself.
func TestRing_Allocations(t *testing.T) {
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
		at = consumeAll(r, at, take)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if seen == 0 {
		t.Error("nothing was consumed")
	}
}

// consumeAll takes turns until no published slot is left, and returns the position after the last one.
func consumeAll[T any](r *Ring[T], position uint64, onSlots func([]T)) uint64 {
	for {
		next := r.consumePublished(position, r.size, onSlots)
		if next == position {
			return position
		}
		position = next
	}
}

// TestRing_Stats follows one ring through a few turns.
func TestRing_Stats(t *testing.T) {
	r, err := New[uint64](8)
	if err != nil {
		t.Fatal(err)
	}
	at := r.head.Load()
	receiveOne := func() { at = r.consumePublished(at, 1, func([]uint64) {}) }
	receiveAll := func() { at = consumeAll(r, at, func([]uint64) {}) }
	skip := func(end func(*Claim[uint64])) func() {
		return func() { c, _ := r.Claim(2); end(&c) }
	}
	put := func() { publish(t, r, 1) }
	for _, step := range []struct {
		name string
		do   func()
		want Stats
	}{
		{"new", func() {}, Stats{Slots: 8}},
		{"two published", func() { put(); put() }, Stats{Slots: 8, Used: 2}},
		{"both received", receiveAll, Stats{Slots: 8, HighWater: 2, Published: 2}},
		{
			"five published", func() { put(); put(); put(); put(); put() },
			Stats{Slots: 8, Used: 5, HighWater: 2, Published: 2},
		},
		{"one received of five in use", receiveOne, Stats{Slots: 8, Used: 4, HighWater: 5, Published: 3}},
		{"a run skipped", skip((*Claim[uint64]).Skip), Stats{Slots: 8, Used: 6, HighWater: 5, Published: 3}},
		{
			"a run left by a panic", skip((*Claim[uint64]).Abandon),
			Stats{Slots: 8, Used: 8, HighWater: 5, Published: 3, Abandoned: 2},
		},
		{"all received", receiveAll, Stats{Slots: 8, HighWater: 8, Published: 7, Skipped: 4, Abandoned: 2}},
	} {
		step.do()
		if got := r.Stats(); got != step.want {
			t.Errorf("%s: %+v, want %+v", step.name, got, step.want)
		}
	}
}

// TestProducers_CacheHead expects that a claim reads the consumer's position only if the
// cached copy does not permit the claim.
func TestProducers_CacheHead(t *testing.T) {
	r, err := New[uint64](4)
	if err != nil {
		t.Fatal(err)
	}
	at := r.head.Load()
	publish(t, r, 3)
	at = r.consumePublished(at, 4, func([]uint64) {})
	publish(t, r, 1)
	if r.headCopy.Load() == at {
		t.Error("the cursor was read for a claim that the copy allowed")
	}
	publish(t, r, 1)
	if r.headCopy.Load() != at {
		t.Error("the cursor was not remembered")
	}
}
