package registry

import (
	"iter"
	"sync/atomic"
)

// hashTable finds small numbers by hash: open addressing, linear probing, at most half
// full, no pointers. What a number stands for, its owner knows and compares.
//
// One goroutine at a time puts numbers, under its owner's lock; any may search without.
// A number is put by one atomic store, after its owner wrote what the number stands for,
// and a table that grew is published when it is complete. So whoever finds a number finds
// what it stands for. Whoever does not find it may be too early.
type hashTable struct {
	hashOf func(number uint32) uint64 // of a number that was put
	slots  atomic.Pointer[[]uint64]
	used   int
}

// A slot is 0, or the upper half of a hash and a number plus one. The lower half of the
// hash says where a search begins.
const (
	slotBytes  = 8
	leastSlots = 64 // a power of two, as every size of the table
	hashHalf   = 32
)

// init makes the zero table an empty one.
func (t *hashTable) init() {
	slots := make([]uint64, leastSlots)
	t.slots.Store(&slots)
}

// candidates are the numbers with a hash that looks like this one.
func (t *hashTable) candidates(hash uint64) iter.Seq[uint32] {
	return func(yield func(number uint32) bool) {
		slots := *t.slots.Load()
		for at := uint32(hash); ; at++ {
			slot := atomic.LoadUint64(&slots[at&uint32(len(slots)-1)])
			if slot == 0 {
				return
			}
			if slot>>hashHalf == hash>>hashHalf && !yield(uint32(slot)-1) {
				return
			}
		}
	}
}

func (t *hashTable) put(hash uint64, number uint32) {
	slots := *t.slots.Load()
	t.used++
	if 2*t.used > len(slots) {
		slots = t.larger(slots)
		t.slots.Store(&slots)
	}
	insert(slots, hash, number)
}

// larger is a table twice as large with all that is in this one.
func (t *hashTable) larger(slots []uint64) []uint64 {
	larger := make([]uint64, 2*len(slots))
	for _, slot := range slots {
		if slot != 0 {
			number := uint32(slot) - 1
			insert(larger, t.hashOf(number), number)
		}
	}
	return larger
}

func insert(slots []uint64, hash uint64, number uint32) {
	mask := uint32(len(slots) - 1)
	at := uint32(hash) & mask
	for slots[at] != 0 {
		at = (at + 1) & mask
	}
	atomic.StoreUint64(&slots[at], hash>>hashHalf<<hashHalf|uint64(number+1))
}
