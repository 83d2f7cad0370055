package client

import (
	"sync/atomic"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// EncodedKey is a key that was encoded once, for a tracer that publishes it many
// times. It spares a snapshot the comparison of its labels, which is a quarter of
// what publishing costs, or, where keys are many and seldom come twice within a
// buffer, their encoding, which is two thirds. So a tracer that can keep one beside
// whatever it knows the span's labels by (a route, a statement, a peer) should. It
// is immutable, belongs to no client, and holds some bytes more than its labels.
type EncodedKey struct {
	raw []byte
	id  uint64
}

// encodedKeys counts them, so that each has an id of its own in this process.
var encodedKeys atomic.Uint64

// EncodeKey encodes a key. It keeps nothing of it.
func EncodeKey(k Key) *EncodedKey {
	if isOversized(&k, keyBound(&k)) {
		k = *new(cutter).cut(&k)
	}
	raw := wire.AppendKey(nil, &k)
	return &EncodedKey{raw: raw, id: encodedKeys.Add(1)}
}

// encodedTable finds the number of an encoded key by its id, in the buffer that
// is being filled. It looks at no byte of the key: comparing those was a ninth of
// what publishing such a snapshot cost. Like keyTable it is flat, open-addressed,
// at most half full, and emptied by counting its generation on.
//
// A tracer that encodes one key over and over fills it with ids of one number;
// what finds no room is then found by its bytes.
type encodedTable struct {
	generation uint32
	used       uint32
	slots      [tableSlots]encodedSlot
}

type encodedSlot struct {
	id         uint64
	generation uint32
	number     uint32
}

// reset empties the table. The zero slot is of generation 0, which no table that
// was reset has.
func (t *encodedTable) reset() {
	t.generation++
	t.used = 0
	if t.generation == 0 {
		clear(t.slots[:])
		t.generation = 1
	}
}

// find returns the slot that holds the id and true, or the slot where it belongs
// and false.
func (t *encodedTable) find(id uint64) (slot *encodedSlot, found bool) {
	for i := id % tableSlots; ; i = (i + 1) % tableSlots {
		s := &t.slots[i]
		if s.generation != t.generation {
			return s, false
		}
		if s.id == id {
			return s, true
		}
	}
}

// put remembers the number of an id in the slot that find gave, while there is
// room.
func (t *encodedTable) put(slot *encodedSlot, id uint64, number uint32) {
	if t.used < tableSlots/2 {
		t.used++
		*slot = encodedSlot{id: id, generation: t.generation, number: number}
	}
}
