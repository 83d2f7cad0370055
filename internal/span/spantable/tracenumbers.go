package spantable

import (
	"math/bits"
	"math/rand/v2"
	"unsafe"
)

// TraceNumbers numbers the traces of one body in the order of their first spans, from 0. It is an
// open-addressing hash table of trace IDs.
type TraceNumbers struct {
	slots []int32   // by hash: the trace's number plus 1, or 0 for an empty slot
	ids   []traceID // by number
}

type traceID struct{ high, low uint64 }

// TraceNumberBytes is the maximum memory per trace: its ID, and four slots, because at least a quarter of
// the slots is used.
const TraceNumberBytes = int(unsafe.Sizeof(traceID{})) + 4*4

// minSlots is the minimum size of the hash table.
const minSlots = 64

// Reset removes all traces and makes the hash table large enough for the given number of traces.
func (t *TraceNumbers) Reset(traces int) {
	size := max(minSlots, 1<<bits.Len(uint(2*traces)))
	if cap(t.slots) < size {
		t.slots = make([]int32, size)
	}
	t.slots = t.slots[:size]
	clear(t.slots)
	t.ids = t.ids[:0]
}

// Len returns the number of traces.
func (t *TraceNumbers) Len() int { return len(t.ids) }

// NumberOf returns the number of the trace with this ID, and adds the trace if it is new.
func (t *TraceNumbers) NumberOf(high, low uint64) int {
	id := traceID{high, low}
	mask := uint64(len(t.slots) - 1)
	for slot := id.hash() & mask; ; slot = (slot + 1) & mask {
		isFree := t.slots[slot] == 0
		if isFree {
			t.ids = append(t.ids, id)
			t.slots[slot] = int32(len(t.ids))
			return len(t.ids) - 1
		}
		number := int(t.slots[slot]) - 1
		if t.ids[number] == id {
			return number
		}
	}
}

// hashSeed is random, so that a client cannot choose trace IDs that share a slot.
var hashSeed = [2]uint64{rand.Uint64(), rand.Uint64()}

func (id traceID) hash() uint64 {
	a, b := bits.Mul64(id.high^hashSeed[0], id.low^hashSeed[1])
	return a ^ b
}
