package ring

import (
	"fmt"
	"math/bits"
	"reflect"
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
