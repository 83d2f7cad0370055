package client

import (
	"sync/atomic"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// EncodedKey is a key that was encoded once, for a tracer that publishes it many
// times. It spares a snapshot the comparison or the encoding of its labels. So a
// tracer that can keep one beside whatever it knows the span's labels by (a route, a
// statement, a peer) should. It is immutable, belongs to no client, and holds some
// bytes more than its labels.
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
// is being filled. It looks at no byte of the key. Each id has one slot; of two ids
// with the same slot the later one takes it, and the other is found by its bytes.
type encodedTable struct {
	generation uint32
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
	if t.generation == 0 {
		clear(t.slots[:])
		t.generation = 1
	}
}

func (t *encodedTable) find(id uint64) (number uint32, found bool) {
	s := &t.slots[id%tableSlots]
	return s.number, s.id == id && s.generation == t.generation
}

func (t *encodedTable) put(id uint64, number uint32) {
	t.slots[id%tableSlots] = encodedSlot{id, t.generation, number}
}
