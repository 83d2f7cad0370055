package client

import (
	"hash/maphash"
	"sync/atomic"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

const (
	// maxKeys is the maximum number of keys per buffer. It is less than max_keys of any daemon, so buffers
	// are independent of the daemon.
	maxKeys = 512
	// tableSlots keeps the table at most half full.
	tableSlots = 2 * maxKeys
	// maxKeyCost exceeds the bytes that a daemon charges for the keys of a buffer, and is less than
	// max_key_bytes of any daemon.
	maxKeyCost = defineRoom + maxKeys*(31+128)
)

// seed differs between processes, so that nobody can choose keys whose hashes collide.
var seed = maphash.MakeSeed()

// keyTable finds the number of a key in the current buffer by its encoded bytes, which are in the
// buffer's definitions. It is an open-addressing hash table.
type keyTable [tableSlots]keySlot

// keySlot is the slot of one key. Its size is 0 if it is empty.
type keySlot struct {
	hash   uint64
	offset uint16 // of the key in the definitions
	size   uint16
	number uint16
}

// find returns the slot that contains the key, or the empty slot where it belongs, and the hash of
// the key.
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

// EncodedKey is a key encoded in advance, for a tracer that publishes it often. It avoids comparing
// or encoding the labels of each snapshot. A tracer should keep one for everything that determines
// the labels of spans, such as a route, a statement or a peer. It is immutable and independent of
// clients, and takes little more memory than its labels.
type EncodedKey struct {
	raw []byte
	id  uint64
}

// encodedKeys counts the encoded keys, to assign IDs.
var encodedKeys atomic.Uint64

// EncodeKey encodes a key. It retains nothing of it.
func EncodeKey(k Key) *EncodedKey {
	if isOversized(&k, maxEncodedLen(&k)) {
		k = *new(cutter).cut(&k)
	}
	return &EncodedKey{raw: wire.AppendKey(nil, &k), id: encodedKeys.Add(1)}
}

// encodedTable finds the number of an EncodedKey in the current buffer by its ID. Each ID has one
// slot. If two IDs share a slot, the later one takes it, and the other key is found by its bytes.
type encodedTable [tableSlots]encodedSlot

// encodedSlot is empty if its ID is 0.
type encodedSlot struct {
	id     uint64
	number uint32
}
