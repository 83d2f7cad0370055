package client

import (
	"hash/maphash"
	"sync/atomic"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

const (
	// maxKeys is the maximum number of keys that a buffer defines. It is below the max_keys of every
	// daemon, because a buffer can be sent to any daemon.
	maxKeys = 512
	// tableSlots keeps the hash table at most half full.
	tableSlots = 2 * maxKeys
	// maxKeyCost is an upper bound of the cost that a daemon charges for the keys of a buffer, and below
	// the max_key_bytes of every daemon.
	maxKeyCost = defineRoom + maxKeys*(31+128)
)

// seed is random for each process, so that keys cannot be chosen to collide.
var seed = maphash.MakeSeed()

// keyTable is an open-addressing hash table that maps encoded keys to their numbers in the current buffer. The bytes
// of the keys are in the message of the buffer that defines them.
type keyTable [tableSlots]keySlot

// keySlot contains one key.
type keySlot struct {
	hash   uint64
	offset uint16 // position of the key in the definitions
	size   uint16 // length of the key; 0 for an empty slot, because no key is empty
	number uint16
}

func (s *keySlot) isEmpty() bool { return s.size == 0 }

// hashKey returns the hash of an encoded key.
func hashKey(encodedKey []byte) uint64 { return maphash.Bytes(seed, encodedKey) }

// find returns the slot that contains the key, or the empty slot in which the key can be stored. hash must be the
// hash of the key. definitions is the message that contains the bytes of all keys in the table. There is always an
// empty slot, because at most half of the slots are used.
func (t *keyTable) find(key []byte, hash uint64, definitions []byte) *keySlot {
	for i := hash % tableSlots; ; i = (i + 1) % tableSlots {
		slot := &t[i]
		if slot.isEmpty() {
			return slot
		}
		storedKey := definitions[slot.offset : slot.offset+slot.size]
		if slot.hash == hash && string(storedKey) == string(key) {
			return slot
		}
	}
}

// EncodedKey is a key that was encoded once, for a tracer that publishes it many times. A snapshot with an
// EncodedKey is published without comparing or encoding its labels, so a tracer should store one next to
// its own data about a route, a statement or a peer, if it can. An EncodedKey is immutable, can be used
// with several clients, and is slightly larger than its labels.
type EncodedKey struct {
	raw []byte
	id  uint64
}

// encodedKeys counts all encoded keys of this process and provides their IDs.
var encodedKeys atomic.Uint64

// EncodeKey returns the encoded form of a key, for Snapshot.Encoded. The result does not refer to memory of the key.
func EncodeKey(k Key) *EncodedKey {
	if isOversized(&k, maxEncodedLength(&k)) {
		var truncator keyTruncator
		k = *truncator.truncate(&k)
	}
	return &EncodedKey{raw: wire.AppendKey(nil, &k), id: encodedKeys.Add(1)}
}

// encodedTable maps the IDs of encoded keys to their numbers in the current buffer, without reading the
// bytes of a key. Each ID has one possible slot, where it overwrites other IDs. The key of an overwritten
// ID is found in the keyTable.
type encodedTable [tableSlots]encodedSlot

// encodedSlot contains one encoded key. It is empty if id is 0, which no key has.
type encodedSlot struct {
	id     uint64
	number uint32
}
