package client

import "hash/maphash"

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
