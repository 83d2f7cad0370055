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
		return fmt.Errorf("size ring: %d slots; give a power of two from 1 to %d", slots, maxSlots)
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
	isAdded := r.addSignal(signal, &r.tail)
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

// Len returns the number of claimed slots. It returns 0 after Publish, Skip or Abandon.
func (c *Claim[T]) Len() int {
	if c.ring == nil {
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
func (c *Claim[T]) Publish() { c.end(toPublish) }

// Skip gives the claimed slots back. The consumer frees them without reading them.
func (c *Claim[T]) Skip() { c.end(toSkip) }

// The values of the parameter skip of Claim.end.
const toPublish, toSkip = false, true

// Abandon skips the claimed slots if neither Publish nor Skip was called: the consumer frees them
// without reading them. They are counted as abandoned. Callers defer it, in case the code that fills
// the slots panics.
func (c *Claim[T]) Abandon() {
	hasEnded := c.ring == nil
	if hasEnded {
		return
	}
	c.ring.abandoned.Add(c.length)
	c.end(toSkip)
}

// end passes the claimed slots to the consumer. If skip is true, the consumer frees them without
// reading them. A second call panics, because the slots can belong to another producer by then.
func (c *Claim[T]) end(skip bool) {
	r := c.ring
	if r == nil {
		panic("BUG: a claimed run was published or skipped twice")
	}
	c.ring = nil
	r.publish(c.start, c.length, skip)
}

// publish marks n claimed slots as published, the first of which is at position start. It wakes the
// consumer if necessary.
func (s *sequence) publish(start, n uint64, skip bool) {
	s.words[start&s.mask].Store(uint64(wordOf(start, n, skip, s.shift)))
	s.wakeAfterPublish()
}

// Consume passes published slots to onSlots in order, and signals to onSignal. It returns after it has
// passed a Stop signal; slots published after Stop stay in the ring. It panics if another call is
// running.
//
// onSlots must not retain the slots. Consume frees the slots that it has passed, at the latest after limit slots or
// after one claim (slots that a producer claimed together), if that has more. Producers then overwrite them. If a
// callback panics, the slots that it got are not freed.
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

// consumePublished passes published slots to onSlots, from position start on, and frees them. It returns the
// position after them. It ends between two runs (slots that were claimed together), after at most limit slots,
// but always consumes the first run.
func (r *Ring[T]) consumePublished(start, limit uint64, onSlots func([]T)) uint64 {
	position := start         // of the next run
	undelivered := start      // position of the first slot that is not passed to onSlots yet
	skippedSlots := uint64(0) // of runs that the producer has skipped
	for {
		run, isPublished := r.read(position)
		if !isPublished {
			break
		}
		end := position + run.length(r.mask)
		isFirst := position == start
		exceedsLimit := end-start > limit
		if exceedsLimit && !isFirst {
			break
		}
		if run.skipped() {
			r.deliver(undelivered, position, onSlots) // the slots before this run
			undelivered = end
			skippedSlots += end - position
		}
		position = end
	}
	r.deliver(undelivered, position, onSlots)
	if position != start {
		r.free(start, position, skippedSlots)
	}
	return position
}

// deliver calls onSlots with the slots from position start up to, but excluding, position end. It calls
// onSlots twice if the slots continue at the start of the ring, and not at all if start equals end.
func (r *Ring[T]) deliver(start, end uint64, onSlots func([]T)) {
	if start == end {
		return
	}
	first, second := r.segments(start, end-start)
	onSlots(first)
	if len(second) > 0 {
		onSlots(second)
	}
}

// free returns the slots from position start up to position end to the producers, and counts them. skipped
// is how many of them the producers skipped.
func (s *sequence) free(start, end, skipped uint64) {
	s.updateHighWater(start, end) // before slots become free
	delivered := end - start - skipped
	s.published.Store(s.published.Load() + delivered)
	if skipped != 0 {
		s.skipped.Store(s.skipped.Load() + skipped)
	}
	s.head.Store(end)
}

// updateHighWater raises the high-water mark to the number of slots in use, if that is higher. In use are at least the
// slots from position start up to position end. To avoid contention with producers, updateHighWater reads s.tail only if
// further slots are published.
func (s *sequence) updateHighWater(start, end uint64) {
	used := end - start
	_, hasMore := s.read(end)
	if hasMore {
		used = min(s.tail.Load()-start, s.size)
	}
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
		return errors.New("it has no size; give a slot at least one field")
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
	Parks     uint64 // how often the consumer has gone to sleep
	Wakes     uint64 // parks that a producer or a signal has ended
}

// Free returns the number of free slots, which can be outdated immediately. It reads the consumer's cache
// line.
func (r *Ring[T]) Free() int { return int(r.size) - r.used() }

// used returns the number of claimed slots that are not freed.
func (r *Ring[T]) used() int {
	head := r.head.Load() // before tail; otherwise tail - head could be negative
	used := r.tail.Load() - head
	return int(min(used, r.size)) // more than size if slots were freed and claimed again in between
}

// Drained returns the position of the first slot that the consumer has not freed. Frequent calls slow down the consumer,
// which writes to the cache line that they read.
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
		Parks:     r.parks.Load(),
		Wakes:     r.wakes.Load(),
	}
}
