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

// New returns an empty ring with the given number of slots, a power of two, and allocates all its
// memory. T must be a number, a bool, or an array or struct of them, without pointers. New returns an
// error otherwise.
func New[T any](slots int) (*Ring[T], error) {
	if err := checkFlat(reflect.TypeFor[T]()); err != nil {
		return nil, fmt.Errorf("check slot type: %w", err)
	}
	if err := CheckSlots(slots); err != nil {
		return nil, err
	}
	r := &Ring[T]{slots: aligned[T](slots)}
	sizeBits := uint(bits.TrailingZeros(uint(slots))) // slots is 1<<sizeBits
	r.init(sizeBits)
	return r, nil
}

// CheckSlots returns an error if a ring can't have the given number of slots.
func CheckSlots(slots int) error {
	if slots < 1 || slots > maxSlots || slots&(slots-1) != 0 {
		return fmt.Errorf("size ring: %d slots; use a power of two from 1 to %d", slots, maxSlots)
	}
	return nil
}

// segments returns the n slots that begin at the given position. If they extend past the end of the
// ring, first contains the slots up to there, and second the rest, from the start of the ring.
// Otherwise second is nil.
func (r *Ring[T]) segments(position, n uint64) (first, second []T) {
	start := position & r.mask
	end := start + n
	if end <= r.size {
		return r.slots[start:end], nil
	}
	return r.slots[start:], r.slots[:end-r.size]
}

// Send sends a signal to the consumer and wakes it. It returns false, and sends nothing, if
// signalDepth signals are pending.
func (r *Ring[T]) Send(signal Signal) bool {
	isAdded := r.addSignal(signal)
	if !isAdded {
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
	ring   *Ring[T] // nil after the end of the run
	start  uint64   // position of the first slot
	length uint64   // number of slots
}

// Claim reserves n adjacent slots for the caller, and panics if n is less than 1. If the Result is
// Claimed, the caller fills the slots, and must then call Publish or Skip. Otherwise no slot is
// reserved.
func (r *Ring[T]) Claim(n int) (Claim[T], Result) {
	if n < 1 {
		panic("BUG: a ring was asked for a run of no slots")
	}
	start, result := r.claim(uint64(n))
	if result != Claimed {
		return Claim[T]{}, result
	}
	return Claim[T]{ring: r, start: start, length: uint64(n)}, Claimed
}

// hasEnded reports whether Publish, Skip or Abandon was called. It is also true for the zero Claim.
func (c *Claim[T]) hasEnded() bool { return c.ring == nil }

// Len returns the number of claimed slots. It returns 0 after Publish, Skip or Abandon.
func (c *Claim[T]) Len() int {
	if c.hasEnded() {
		return 0
	}
	return int(c.length)
}

// End returns the position after the last claimed slot. The consumer has freed all claimed slots when
// Ring.Drained returns at least this position.
func (c *Claim[T]) End() uint64 { return c.start + c.length }

// Slot returns the i-th claimed slot. Until the caller overwrites the slot, it contains old data.
func (c *Claim[T]) Slot(i int) *T {
	if uint64(i) >= c.length {
		panic("BUG: a slot was asked for beyond the end of its run")
	}
	return &c.ring.slots[(c.start+uint64(i))&c.ring.mask]
}

// Segments returns the claimed slots in order. If they wrap around at the end of the ring, those at the start
// of the ring are in second. Otherwise all are in first.
func (c *Claim[T]) Segments() (first, second []T) { return c.ring.segments(c.start, c.length) }

// Publish passes the claimed slots to the consumer. The caller must not use them afterwards.
func (c *Claim[T]) Publish() {
	const isSkipped = false
	c.end(isSkipped)
}

// Skip gives the claimed slots back. The consumer frees them without reading them.
func (c *Claim[T]) Skip() {
	const isSkipped = true
	c.end(isSkipped)
}

// Abandon skips the claimed slots if neither Publish nor Skip was called: the consumer frees them
// without reading them. They are counted as abandoned. Callers defer it, in case the code that fills
// the slots panics.
func (c *Claim[T]) Abandon() {
	if c.hasEnded() {
		return
	}
	c.ring.abandoned.Add(c.length)
	c.Skip()
}

// end passes the claimed slots to the consumer. If isSkipped is true, the consumer frees them without
// reading them. A second call panics, because the slots can belong to another producer by then.
func (c *Claim[T]) end(isSkipped bool) {
	if c.hasEnded() {
		panic("BUG: a claimed run was published or skipped twice")
	}
	r := c.ring
	c.ring = nil
	r.publish(c.start, c.length, isSkipped)
}

// publish marks n claimed slots as published, the first of which is at position start. It wakes the
// consumer if necessary.
func (s *sequence) publish(start, n uint64, isSkipped bool) {
	s.words[start&s.mask].Store(uint64(wordOf(start, n, isSkipped, s.shift)))
	s.wakeAfterPublish()
}

// Consume passes published slots to onSlots in order, and signals to onSignal. It returns after it has
// passed a Stop signal; slots published after Stop stay in the ring. It panics if another call is
// running.
//
// onSlots must not retain the slots, because Consume frees them afterwards, and producers overwrite them. Consume
// passes at most limit slots before it frees them, or one claim with more slots. If a callback panics, the slots
// that it got are not freed.
func (r *Ring[T]) Consume(limit int, onSlots func([]T), onSignal func(Signal)) {
	if limit < 1 {
		panic("BUG: the limit of a ring's consumer must be at least 1")
	}
	isOnlyConsumer := r.consuming.CompareAndSwap(false, true)
	if !isOnlyConsumer {
		panic("BUG: a ring was given a second consumer")
	}
	defer r.consuming.Store(false)
	idle := newIdlePolicy()
	defer idle.timer.Stop()
	position := r.head.Load()
	for {
		signal, hasSignal := r.takeSignal(position)
		if hasSignal {
			onSignal(signal)
			if signal.Kind == Stop {
				return
			}
		}
		next := r.consumePublished(position, uint64(limit), onSlots)
		hasSlots := next != position
		if hasSlots || hasSignal {
			idle.recordWork()
		} else {
			r.await(position, idle)
		}
		position = next
	}
}

// consumePublished consumes published runs (a run is the slots of one claim) from position start on, and returns the
// position after them. It passes their slots to onSlots, and then frees them. If the first run is skipped, it only frees
// that run.
func (r *Ring[T]) consumePublished(start, limit uint64, onSlots func([]T)) (next uint64) {
	run, isPublished := r.read(start)
	if !isPublished {
		return start
	}
	if run.skipped() {
		end := start + run.length(r.mask)
		r.skipped.Add(end - start)
		r.free(start, end)
		return end
	}
	end := r.findEnd(start, limit)
	r.deliver(start, end, onSlots)
	r.published.Add(end - start)
	r.free(start, end)
	return end
}

// findEnd returns the position after the published runs that begin at position start. It stops before a skipped run. It
// also stops before a run that would make more than limit slots, but always includes the first run.
func (s *sequence) findEnd(start, limit uint64) uint64 {
	end := start
	for {
		run, isPublished := s.read(end)
		if !isPublished || run.skipped() {
			return end
		}
		endOfRun := end + run.length(s.mask)
		isFirst := end == start
		exceedsLimit := endOfRun-start > limit
		if exceedsLimit && !isFirst {
			return end
		}
		end = endOfRun
	}
}

// deliver calls onSlots with the slots from position start up to, but excluding, position end. It calls
// onSlots twice if the slots continue at the start of the ring.
func (r *Ring[T]) deliver(start, end uint64, onSlots func([]T)) {
	first, second := r.segments(start, end-start)
	onSlots(first)
	if len(second) > 0 {
		onSlots(second)
	}
}

// free returns the slots from position start up to position end to the producers.
func (s *sequence) free(start, end uint64) {
	s.updateHighWater(start, end) // while these slots are still in use
	s.head.Store(end)
}

// updateHighWater raises the maximum number of slots in use, if more slots are in use now. The slots from position start
// up to position end have been consumed but not freed, so they are in use.
func (s *sequence) updateHighWater(start, end uint64) {
	endInUse := end
	_, hasMore := s.read(end)
	if hasMore { // otherwise tail is not read, to avoid contention with the producers
		endInUse = s.tail.Load()
	}
	used := endInUse - start
	if used > s.highWater.Load() {
		s.highWater.Store(used)
	}
}

const (
	// line is the size of a cache line of this processor.
	line = unsafe.Sizeof(cpu.CacheLinePad{})

	// apart is the distance between fields that different threads write. It is two lines, because
	// some processors fetch lines in pairs.
	apart = 2 * line
)

// aligned returns n zeroed elements in memory that begins at a cache line. E must not contain pointers,
// because the garbage collector does not scan this memory.
func aligned[E any](n int) []E {
	var zero E
	size := uintptr(n) * unsafe.Sizeof(zero)
	raw := make([]byte, size+line)
	start := unsafe.Pointer(unsafe.SliceData(raw))
	untilNextLine := line - uintptr(start)%line
	return unsafe.Slice((*E)(unsafe.Add(start, untilNextLine)), n)
}

// checkFlat returns an error if the size of a slot type is 0, or if the type contains pointers.
func checkFlat(t reflect.Type) error {
	if t.Size() == 0 {
		return errors.New("it has no size; a slot needs at least one field")
	}
	return checkField(t, t.String())
}

// checkField returns an error if t is or contains a pointer; slices, maps and strings count as
// pointers. The error names the field that contains the pointer. path is the name of t in the error.
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
	Sleeps    uint64 // number of times that the consumer has gone to sleep
	Wakes     uint64 // sleeps that a producer or a signal has ended
}

// Free returns the number of free slots, which can be outdated immediately. Frequent calls slow down the consumer,
// because they read a cache line that it writes.
func (r *Ring[T]) Free() int { return int(r.size) - r.used() }

// used returns the number of claimed slots that are not freed.
func (r *Ring[T]) used() int {
	head := r.head.Load()
	tail := r.tail.Load() // read after head, so it is not lower
	used := tail - head   // more than size if slots were freed and claimed again in between
	return int(min(used, r.size))
}

// Drained returns the position of the first slot that the consumer has not freed. Frequent calls slow down the consumer,
// because they read a cache line that it writes.
func (r *Ring[T]) Drained() uint64 { return r.head.Load() }

// Stats returns the counters of the ring and the number of slots in use. Producers and the consumer
// continue meanwhile, so the values can belong to slightly different times.
func (r *Ring[T]) Stats() Stats {
	return Stats{
		Slots:     int(r.size),
		Used:      r.used(),
		HighWater: int(r.highWater.Load()),
		Published: r.published.Load(),
		Skipped:   r.skipped.Load(),
		Abandoned: r.abandoned.Load(),
		Sleeps:    r.sleeps.Load(),
		Wakes:     r.wakes.Load(),
	}
}
