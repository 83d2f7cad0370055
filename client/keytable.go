package client

import "hash/maphash"

const (
	// maxKeys is how many keys a buffer defines. It is below the max_keys of any
	// daemon, so buffers need not know which daemon they will meet.
	maxKeys = 512
	// tableSlots keeps the table at most half full.
	tableSlots = 2 * maxKeys
)

// seed is one a process, so that nobody outside can choose keys that collide.
var seed = maphash.MakeSeed()

// keyTable finds the number of a key by its bytes, which lie in the
// definitions of the buffer that is being filled. It is flat and open-addressed.
//
// A slot is in use when its tag holds the current generation, so a new buffer
// empties the table by counting on. The other half of the tag is of the key's
// hash: one comparison decides both.
type keyTable struct {
	generation uint32
	slots      [tableSlots]keySlot
}

type keySlot struct {
	tag    uint64 // generation, then 32 bits of the hash
	offset uint16 // of the key in the definitions
	size   uint16
	number uint16
}

// reset empties the table. The zero tag is of generation 0, which no table that
// was reset has.
func (t *keyTable) reset() {
	t.generation++
	if t.generation == 0 {
		clear(t.slots[:])
		t.generation = 1
	}
}

// find returns the slot that holds the key and true, or the slot where it
// belongs, its tag to set, and false.
func (t *keyTable) find(key, definitions []byte) (slot *keySlot, tag uint64, found bool) {
	hash := maphash.Bytes(seed, key)
	tag = uint64(t.generation)<<32 | hash>>32
	for i := hash % tableSlots; ; i = (i + 1) % tableSlots {
		s := &t.slots[i]
		if s.tag == tag && string(definitions[s.offset:s.offset+s.size]) == string(key) {
			return s, tag, true
		}
		if uint32(s.tag>>32) != t.generation {
			return s, tag, false
		}
	}
}
