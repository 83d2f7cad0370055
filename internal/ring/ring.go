package ring

import (
	"errors"
	"fmt"
	"math/bits"
	"reflect"
	"unsafe"

	"golang.org/x/sys/cpu"
)

// maxSlots is the maximum size of a ring.
const maxSlots = 1 << 24

// Ring is a bounded queue of slots with multiple producers and one consumer.
type Ring[T any] struct {
	slots []T
	sequence
}

// New returns an empty ring and allocates all its memory. T must consist of numbers, arrays and
// structs only. slots must be a power of two.
func New[T any](slots int) (*Ring[T], error) {
	if err := checkFlat(reflect.TypeFor[T]()); err != nil {
		return nil, fmt.Errorf("check slot type: %w", err)
	}
	if err := CheckSlots(slots); err != nil {
		return nil, err
	}
	r := &Ring[T]{slots: aligned[T](slots)}
	r.init(uint(bits.TrailingZeros(uint(slots))))
	return r, nil
}

// CheckSlots returns an error if a ring can't have the given number of slots.
func CheckSlots(slots int) error {
	if slots < 1 || slots > maxSlots || slots&(slots-1) != 0 {
		return fmt.Errorf("size ring: %d slots; give a power of two from 1 to %d", slots, maxSlots)
	}
	return nil
}

// segments returns n slots that begin at a position. If they wrap around at the end of the ring, b
// contains the slots from the start of the ring.
func (r *Ring[T]) segments(at, n uint64) (a, b []T) {
	start := at & r.mask
	end := start + n
	if end <= r.size {
		return r.slots[start:end], nil
	}
	return r.slots[start:], r.slots[:end-r.size]
}

// Send sends a signal to the consumer and wakes it. It reports false, and sends nothing, if
// signalDepth signals are pending.
func (r *Ring[T]) Send(signal Signal) bool {
	if !r.put(signal, &r.tail) {
		return false
	}
	r.wake()
	return true
}

// Claim is a run of slots that one producer fills. It is used by one goroutine, which ends it with
// exactly one Publish or Skip, and does not use its slots afterwards.
//
// A claim that is never ended blocks the consumer at its first slot. If the code between claim and
// publish can panic, use a deferred Abandon. It allocates nothing:
//
//	c, result := r.Claim(n)
//	if result != ring.Claimed { ... }
//	defer c.Abandon()
//	... fill ...
//	c.Publish()
//
// A batch that claims from several rings can keep its claims in a reused slice, and abandon all of
// them in one deferred call. Abandon does nothing for the zero Claim.
type Claim[T any] struct {
	ring *Ring[T] // nil after the end of the run
	at   uint64
	n    uint64
}

// Claim claims a run of n adjacent slots, or none. n must be at least 1.
func (r *Ring[T]) Claim(n int) (Claim[T], Result) {
	if n < 1 {
		panic("BUG: a ring was asked for a run of no slots")
	}
	at, result := r.claim(uint64(n))
	if result != Claimed {
		return Claim[T]{}, result
	}
	return Claim[T]{ring: r, at: at, n: uint64(n)}, Claimed
}

// Len returns the number of slots, or 0 after the run has ended.
func (c *Claim[T]) Len() int {
	if c.ring == nil {
		return 0
	}
	return int(c.n)
}

// End returns the position after the last slot of the run. The run has been consumed and freed when
// Drained returns at least this.
func (c *Claim[T]) End() uint64 { return c.at + c.n }

// Slot returns the i-th slot of the run. It contains data of an earlier lap.
func (c *Claim[T]) Slot(i int) *T {
	if uint64(i) >= c.n {
		panic("BUG: a slot was asked for beyond the end of its run")
	}
	return &c.ring.slots[(c.at+uint64(i))&c.ring.mask]
}

// Segments returns the slots in order. The second slice is empty unless the run wraps around.
func (c *Claim[T]) Segments() (a, b []T) { return c.ring.segments(c.at, c.n) }

// Publish passes the run to the consumer.
func (c *Claim[T]) Publish() { c.end(false) }

// Skip returns the run unread: the consumer passes over it.
func (c *Claim[T]) Skip() { c.end(true) }

// Abandon skips a run that was neither published nor skipped, because another claim of the same
// batch failed or because of a panic, and counts its slots as abandoned. It does nothing after
// Publish or Skip, and does not recover the panic.
func (c *Claim[T]) Abandon() {
	if c.ring == nil {
		return
	}
	c.ring.abandoned.Add(c.n)
	c.end(true)
}

// end publishes the run and clears the claim. A second call would publish slots of another producer,
// so it panics.
func (c *Claim[T]) end(skip bool) {
	r := c.ring
	if r == nil {
		panic("BUG: a claimed run was published or skipped twice")
	}
	c.ring = nil
	r.publish(c.at, c.n, skip)
}

// publish marks a claimed run as published, and wakes the consumer if necessary.
func (s *sequence) publish(at, n uint64, skip bool) {
	s.words[at&s.mask].Store(uint64(wordOf(at, n, skip, s.shift)))
	s.wakeAfterPublish()
}

// Consume runs the consumer on the caller's goroutine. Only one can run at a time. It returns after
// it has delivered Stop. Slots published later stay in the ring for another Consume.
//
// onSlots is called with published slots in order, as slices of the ring. They are freed after it
// returns, so it must not retain them. Slots are freed after at most limit slots, or after one run
// if that is longer. onSignal is called with pending signals in between.
//
// If a callback panics, the panic propagates, and the slots concerned are not freed.
func (r *Ring[T]) Consume(limit int, onSlots func([]T), onSignal func(Signal)) {
	if limit < 1 {
		panic("BUG: a ring's consumer was given no room for a turn")
	}
	if !r.consuming.CompareAndSwap(false, true) {
		panic("BUG: a ring was given a second consumer")
	}
	defer r.consuming.Store(false)
	idle := newIdlePolicy()
	defer idle.timer.Stop()
	at := r.head.Load()
	for {
		signal, signalled := r.take(at)
		if signalled {
			onSignal(signal)
			if signal.Kind == Stop {
				return
			}
		}
		next := r.consumeRuns(at, uint64(limit), onSlots)
		if next != at || signalled {
			idle.work()
		} else {
			r.await(at, idle)
		}
		at = next
	}
}

// consumeRuns passes the published runs that begin at a position to onSlots, then frees their slots
// with one store. It stops before the run that would exceed limit slots, unless that is the first one.
// It returns the position after the consumed runs.
func (r *Ring[T]) consumeRuns(from, limit uint64, onSlots func([]T)) uint64 {
	start, at, skipped := from, from, uint64(0)
	for {
		w, published := r.read(at)
		if !published {
			break
		}
		n := w.length(r.mask)
		if isOverLimit, isFirst := at+n-from > limit, at == from; isOverLimit && !isFirst {
			break
		}
		if w.skipped() {
			r.deliver(start, at, onSlots)
			start = at + n
			skipped += n
		}
		at += n
	}
	r.deliver(start, at, onSlots)
	if at != from {
		r.free(from, at, skipped)
	}
	return at
}

// deliver passes the slots between two positions to onSlots, in two parts if they wrap around.
func (r *Ring[T]) deliver(start, end uint64, onSlots func([]T)) {
	if start == end {
		return
	}
	a, b := r.segments(start, end-start)
	onSlots(a)
	if len(b) > 0 {
		onSlots(b)
	}
}

// free returns positions to the producers, and updates the counters. Just before that, the ring is
// fullest. A consumer that has read everything knows how full; only if more is published, the tail
// is read.
func (s *sequence) free(from, to, skipped uint64) {
	used := to - from
	if _, more := s.read(to); more {
		used = min(s.tail.Load()-from, s.size)
	}
	if used > s.highWater.Load() {
		s.highWater.Store(used)
	}
	s.published.Store(s.published.Load() + to - from - skipped)
	if skipped != 0 {
		s.skipped.Store(s.skipped.Load() + skipped)
	}
	s.head.Store(to)
}

const (
	// line is the size of a cache line of this processor.
	line = unsafe.Sizeof(cpu.CacheLinePad{})

	// apart is the distance between fields that different threads write. It is two lines, because
	// some processors fetch lines in pairs.
	apart = 2 * line
)

// aligned returns n zeroed elements that start at a cache line. E has no pointers, so they can be
// stored in memory allocated as bytes, which the garbage collector does not scan.
func aligned[E any](n int) []E {
	var zero E
	raw := make([]byte, uintptr(n)*unsafe.Sizeof(zero)+line)
	base := unsafe.Pointer(unsafe.SliceData(raw))
	offset := -uintptr(base) & (line - 1)
	return unsafe.Slice((*E)(unsafe.Add(base, offset)), n)
}

// checkFlat returns an error if the size of a slot type is 0, or if the type contains pointers.
func checkFlat(t reflect.Type) error {
	if t.Size() == 0 {
		return errors.New("it has no size; give a slot at least one field")
	}
	return checkField(t, t.String())
}

// checkField checks a type recursively. path is the name of the field for errors.
func checkField(t reflect.Type, path string) error {
	switch t.Kind() {
	case reflect.Bool,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr,
		reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		return nil
	case reflect.Array:
		return checkField(t.Elem(), path+"[]")
	case reflect.Struct:
		for i := range t.NumField() {
			field := t.Field(i)
			if err := checkField(field.Type, path+"."+field.Name); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("%s is a %s, which holds a pointer; keep only numbers, arrays and structs of them",
		path, t)
}

// Stats contains counters of a ring, which never decrease, and its current state.
type Stats struct {
	Slots     int    // size of the ring
	Used      int    // claimed slots that are not freed
	HighWater int    // maximum of Used, measured when slots are freed
	Published uint64 // slots that were consumed and freed
	Skipped   uint64 // slots that were skipped and freed
	Abandoned uint64 // slots skipped by Abandon
	Parks     uint64 // how often the consumer has gone to sleep
	Wakes     uint64 // parks that a producer or a signal has ended
}

// Free returns the number of free slots, which can be outdated immediately. It reads the consumer's cache
// line.
func (r *Ring[T]) Free() int {
	head := r.head.Load() // read first, because a tail read before it could be less
	return int(r.size - min(r.tail.Load()-head, r.size))
}

// Drained returns the position up to which all slots have been consumed and freed. It reads the consumer's
// cache line.
func (r *Ring[T]) Drained() uint64 { return r.head.Load() }

// Stats returns the counters. They are read one after another while the ring is in use.
func (r *Ring[T]) Stats() Stats {
	head := r.head.Load()
	return Stats{
		Slots:     int(r.size),
		Used:      int(min(r.tail.Load()-head, r.size)),
		HighWater: int(r.highWater.Load()),
		Published: r.published.Load(),
		Skipped:   r.skipped.Load(),
		Abandoned: r.abandoned.Load(),
		Parks:     r.parks.Load(),
		Wakes:     r.wakes.Load(),
	}
}
