package ring

import (
	"errors"
	"fmt"
	"math/bits"
	"reflect"
	"unsafe"

	"golang.org/x/sys/cpu"
)

// maxSlots bounds a ring's size.
const maxSlots = 1 << 24

// Ring is a bounded queue of slots from many producers to one consumer.
type Ring[T any] struct {
	slots []T
	sequence
}

// New returns an empty ring. T is made of numbers, arrays and structs only, and
// slots is a power of two; all memory is allocated here.
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

// CheckSlots says why a ring can't have that many slots.
func CheckSlots(slots int) error {
	if slots < 1 || slots > maxSlots || slots&(slots-1) != 0 {
		return fmt.Errorf("size ring: %d slots; give a power of two from 1 to %d", slots, maxSlots)
	}
	return nil
}

// segments is n slots from a position on, cut where the ring ends.
func (r *Ring[T]) segments(at, n uint64) (a, b []T) {
	start := at & r.mask
	end := start + n
	if end <= r.size {
		return r.slots[start:end], nil
	}
	return r.slots[start:], r.slots[:end-r.size]
}

// Send gives the consumer a signal and wakes it. It is false when signalDepth
// signals wait already; nothing was sent then.
func (r *Ring[T]) Send(signal Signal) bool {
	if !r.put(signal, &r.tail) {
		return false
	}
	r.wake()
	return true
}

// Claim is a run of slots that one producer fills. It is a value of the
// producer's own: one goroutine uses it, ends it with exactly one Publish or
// Skip, and touches no slot of it afterwards.
//
// A claim that is never ended stops the consumer for ever at its first slot. Where code
// between claim and publish might panic, guard it with a deferred Abandon. The two forms below
// allocate nothing:
//
//	c, result := r.Claim(n)
//	if result != ring.Claimed { ... }
//	defer c.Abandon()
//	... fill ...
//	c.Publish()
//
// A batch that claims from several rings keeps its claims in a slice that it
// reuses, and one deferred call abandons each of them. Abandoning the zero Claim
// does nothing, so it need not know which were made.
type Claim[T any] struct {
	ring *Ring[T] // nil once the run is ended
	at   uint64
	n    uint64
}

// Claim takes a run of n adjacent slots, or none. n below 1 is a bug.
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

// Len is how many slots the run has, 0 once it is ended.
func (c *Claim[T]) Len() int {
	if c.ring == nil {
		return 0
	}
	return int(c.n)
}

// End is the position behind the run's last slot. The run has been consumed and
// freed once Drained has come this far.
func (c *Claim[T]) End() uint64 { return c.at + c.n }

// Slot is the i'th slot of the run. It holds what an earlier lap left there.
func (c *Claim[T]) Slot(i int) *T {
	if uint64(i) >= c.n {
		panic("BUG: a slot was asked for beyond the end of its run")
	}
	return &c.ring.slots[(c.at+uint64(i))&c.ring.mask]
}

// Segments is the run as slices, in order; the second is empty unless the run
// wraps round the ring's end.
func (c *Claim[T]) Segments() (a, b []T) { return c.ring.segments(c.at, c.n) }

// Publish hands the run to the consumer.
func (c *Claim[T]) Publish() { c.end(false) }

// Skip gives the run back unread: the consumer passes over it.
func (c *Claim[T]) Skip() { c.end(true) }

// Abandon skips a run that was neither published nor skipped, as one that goes with
// another that found no room, or that a panic left behind, and counts its slots as
// such. It does nothing to any other claim, and does not recover the panic.
func (c *Claim[T]) Abandon() {
	if c.ring == nil {
		return
	}
	c.ring.abandoned.Add(c.n)
	c.end(true)
}

// end publishes the run and lets go of it, so that a second end is noticed
// instead of corrupting whoever holds those positions by then.
func (c *Claim[T]) end(skip bool) {
	r := c.ring
	if r == nil {
		panic("BUG: a claimed run was published or skipped twice")
	}
	c.ring = nil
	r.publish(c.at, c.n, skip)
}

// publish hands a claimed run to the consumer, waking it if it waits for that.
func (s *sequence) publish(at, n uint64, skip bool) {
	s.words[at&s.mask].Store(uint64(wordOf(at, n, skip, s.shift)))
	s.wakeFor()
}

// Consume is the consumer's loop, on the caller's goroutine; a ring has one at a time. It
// returns after it delivered Stop. Slots that are published later stay in the ring, and
// another Consume would find them.
//
// onSlots is given published slots in order, as slices of the ring itself: they
// are freed after it returned, so it keeps none of them. One turn takes the runs
// that are there, as long as they are not more than limit slots together, but
// never less than one run. onSignal is given the signals that are due between
// two turns.
//
// A panic of either leaves Consume; the slots of that turn are not freed.
func (r *Ring[T]) Consume(limit int, onSlots func([]T), onSignal func(Signal)) {
	if limit < 1 {
		panic("BUG: a ring's consumer was given no room for a turn")
	}
	if !r.consuming.CompareAndSwap(false, true) {
		panic("BUG: a ring was given a second consumer")
	}
	defer r.consuming.Store(false)
	sleeps := newIdle()
	defer sleeps.timer.Stop()
	at := r.head.Load()
	for {
		signal, signalled := r.take(at)
		if signalled {
			onSignal(signal)
			if signal.Kind == Stop {
				return
			}
		}
		next := r.turn(at, uint64(limit), onSlots)
		if next != at || signalled {
			sleeps.work()
		} else {
			r.await(at, sleeps)
		}
		at = next
	}
}

// turn hands over the runs published from a position on, frees them with one
// store, and returns where the next turn starts.
func (r *Ring[T]) turn(from, limit uint64, onSlots func([]T)) uint64 {
	start, at, skipped := from, from, uint64(0)
	for {
		w, published := r.read(at)
		if !published {
			break
		}
		n := w.length(r.mask)
		if at+n-from > limit && at != from {
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

// deliver gives the consumer the slots between two positions, in one piece or,
// where the ring ends, two.
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

// free gives the positions of a turn back to the producers and counts them.
//
// The ring is fullest just before that. A consumer that found less than its
// limit has seen all of it; only one that leaves something behind asks the
// producers' line how much.
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
	// line is what one cache line of this processor holds.
	line = unsafe.Sizeof(cpu.CacheLinePad{})

	// apart is the distance between fields that different threads write. It is
	// two lines, because processors that fetch lines in pairs would otherwise
	// carry the neighbour along.
	apart = 2 * line
)

// aligned returns n zeroed elements whose first starts a cache line. E holds
// no pointers, so that memory allocated as bytes may carry it: the collector
// looks at neither.
func aligned[E any](n int) []E {
	var zero E
	raw := make([]byte, uintptr(n)*unsafe.Sizeof(zero)+line)
	base := unsafe.Pointer(unsafe.SliceData(raw))
	offset := -uintptr(base) & (line - 1)
	return unsafe.Slice((*E)(unsafe.Add(base, offset)), n)
}

// checkFlat says why a slot type can't be kept in a ring: it has no size, or it
// holds something that the garbage collector would have to follow.
func checkFlat(t reflect.Type) error {
	if t.Size() == 0 {
		return errors.New("it has no size; give a slot at least one field")
	}
	return checkField(t, t.String())
}

// checkField descends through arrays and structs to the numbers.
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

// Stats is what a ring did and holds. Counts never go back.
type Stats struct {
	Slots     int    // the ring's size
	Used      int    // slots claimed and not freed yet
	HighWater int    // the most that the consumer ever found in use when it freed
	Published uint64 // slots that the consumer was given and has freed
	Skipped   uint64 // slots that it passed over and has freed
	Abandoned uint64 // slots that Abandon skipped
	Parks     uint64 // times that the consumer went to sleep
	Wakes     uint64 // parks that a producer or a signal ended
}

// Free is how many slots a claim made now might find, and Drained the position
// up to which all have been consumed and freed. Both grow older as they are
// looked at. They cost a look at the consumer's own line.
func (r *Ring[T]) Free() int {
	head := r.head.Load() // first: a tail read before it might lie behind it
	return int(r.size - min(r.tail.Load()-head, r.size))
}

// Drained is explained at Free.
func (r *Ring[T]) Drained() uint64 { return r.head.Load() }

// Stats reads the counters. They are read one after another, while the ring
// goes on.
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
