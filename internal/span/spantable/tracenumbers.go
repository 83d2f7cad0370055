package spantable

import (
	"math/bits"
	"math/rand/v2"
	"unsafe"
)

// TraceNumbers numbers the traces of one body, from 0 on in the order in which their first spans
// came. It is a flat hash table of their ids.
type TraceNumbers struct {
	slots []int32 // by hash, one more than a number
	ids   []traceID
}

type traceID struct{ high, low uint64 }

// TraceNumberBytes is what a trace takes at most: its id, and slots of which a quarter is used.
const TraceNumberBytes = int(unsafe.Sizeof(traceID{})) + 4*4

// firstSlots is the size of a table to begin with.
const firstSlots = 64

// Reset forgets all traces and makes room for so many.
func (t *TraceNumbers) Reset(traces int) {
	need := max(firstSlots, 1<<bits.Len(uint(2*traces)))
	if cap(t.slots) < need {
		t.slots = make([]int32, need)
	}
	t.slots = t.slots[:need]
	clear(t.slots)
	t.ids = t.ids[:0]
}

// Len is how many traces have a number.
func (t *TraceNumbers) Len() int { return len(t.ids) }

// NumberOf is the number of the trace with an id, which may be new.
func (t *TraceNumbers) NumberOf(high, low uint64) int {
	id, mask := traceID{high, low}, uint64(len(t.slots)-1)
	for at := id.hash() & mask; ; at = (at + 1) & mask {
		number := int(t.slots[at]) - 1
		if number < 0 {
			t.ids = append(t.ids, id)
			t.slots[at] = int32(len(t.ids))
			return len(t.ids) - 1
		}
		if t.ids[number] == id {
			return number
		}
	}
}

// secret are numbers that nobody can choose ids by that share a slot.
var secret = [2]uint64{rand.Uint64(), rand.Uint64()}

func (id traceID) hash() uint64 {
	a, b := bits.Mul64(id.high^secret[0], id.low^secret[1])
	return a ^ b
}
