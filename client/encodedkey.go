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
	return &EncodedKey{raw: wire.AppendKey(nil, &k), id: encodedKeys.Add(1)}
}

// encodedTable finds the number of an encoded key by its id, in the buffer that
// is being filled. It looks at no byte of the key. Each id has one slot; of two ids
// with the same slot the later one takes it, and the other is found by its bytes.
type encodedTable [tableSlots]encodedSlot

// encodedSlot is empty with the id 0, which no key has.
type encodedSlot struct {
	id     uint64
	number uint32
}
