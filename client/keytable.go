package client

import (
	"hash/maphash"
	"sync/atomic"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

const (
	// maxKeys is how many keys a buffer defines. It is below the max_keys of any
	// daemon, so buffers need not know which daemon they will meet.
	maxKeys = 512
	// tableSlots keeps the table at most half full.
	tableSlots = 2 * maxKeys
	// maxKeyCost is more than what a daemon charges for the keys of a buffer, and below
	// the max_key_bytes of any.
	maxKeyCost = defineRoom + maxKeys*(31+128)
)

// seed is one a process, so that nobody outside can choose keys that collide.
var seed = maphash.MakeSeed()

// keyTable finds the number of a key by its bytes, which lie in the
// definitions of the buffer that is being filled. It is flat and open-addressed.
type keyTable [tableSlots]keySlot

// keySlot is of one key, or empty: then its size is 0, which no key has.
type keySlot struct {
	hash   uint64
	offset uint16 // of the key in the definitions
	size   uint16
	number uint16
}

// find returns the slot that holds the key and true, or the slot where it
// belongs, its hash to set, and false.
func (t *keyTable) find(key, definitions []byte) (slot *keySlot, hash uint64, found bool) {
	hash = maphash.Bytes(seed, key)
	for i := hash % tableSlots; ; i = (i + 1) % tableSlots {
		s := &t[i]
		if s.size == 0 {
			return s, hash, false
		}
		if s.hash == hash && string(definitions[s.offset:s.offset+s.size]) == string(key) {
			return s, hash, true
		}
	}
}

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
