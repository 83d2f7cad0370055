package oteltraces

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"unsafe"
)

// traceTable is the traces of one body, found by their ids: a flat hash table whose traces
// lie in the order in which their first spans came.
type traceTable struct {
	slots  []int32 // by hash, one more than the place of a trace
	traces []trace
}

// trace is what is known of one.
type trace struct {
	high, low uint64 // its id
	isWanted  bool   // for an error, or because it was slow
	isKept    bool   // at least one span of it
}

// traceBytes is what a trace takes at most: itself, and slots of which a quarter is used.
const traceBytes = int(unsafe.Sizeof(trace{})) + 4*4

// firstSlots is the size of a table to begin with.
const firstSlots = 64

// reset empties the table and makes room for so many traces.
func (t *traceTable) reset(traces int) {
	need := max(firstSlots, 1<<bits.Len(uint(2*traces)))
	if cap(t.slots) < need {
		t.slots = make([]int32, need)
	}
	t.slots = t.slots[:need]
	clear(t.slots)
	t.traces = t.traces[:0]
}

// of is the place of the trace with an id, which may be new.
func (t *traceTable) of(high, low uint64) int {
	mask := uint64(len(t.slots) - 1)
	for at := hash(high, low) & mask; ; at = (at + 1) & mask {
		place := t.slots[at]
		if place == 0 {
			t.traces = append(t.traces, trace{high: high, low: low})
			t.slots[at] = int32(len(t.traces))
			return len(t.traces) - 1
		}
		if known := &t.traces[place-1]; known.high == high && known.low == low {
			return int(place - 1)
		}
	}
}

// secret are numbers that nobody can choose ids by that share a place.
var secret = [2]uint64{rand.Uint64(), rand.Uint64()}

func hash(high, low uint64) uint64 {
	a, b := bits.Mul64(high^secret[0], low^secret[1])
	return a ^ b
}

// idOf is the id of a record's trace; one that has none is of a trace whose id is all zeros.
func (p *payload) idOf(rec *record) (high, low uint64) {
	if rec.traceID == 0 {
		return 0, 0
	}
	id := p.body[rec.traceID:]
	return binary.BigEndian.Uint64(id), binary.BigEndian.Uint64(id[8:])
}
