package admit

import (
	"bytes"
	"hash/maphash"
	"math"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/registry"
)

// resolved is what the hot path needs of a key: which aggregate, and by which hash it is
// routed to a ring.
type resolved struct {
	used      use // the interval that the rest is valid in
	id        registry.KeyID
	hash      uint32
	collapsed registry.LabelSet
}

// ignoredKey is the number of a key whose spans are ignored: no interval has so many keys.
const ignoredKey registry.KeyID = registry.MostKeys

// use is the first or a later use of a key in an interval, so that one comparison tells the hot
// path that there is nothing to do. It is 0 before the first use.
type use uint64

// useIn is the first use in an interval, by its number plus one.
func useIn(interval uint64) use { return use(interval << 1) }

// second is a use after the first in the same interval.
func (u use) second() use { return u | 1 }

// isIn reports whether a use is in that interval.
func (u use) isIn(interval uint64) bool { return uint64(u>>1) == interval }

// knownKey is a key that the publisher has used, as it came. It is admitted at its
// first two uses in an interval, from its bytes: its labels would take three times the memory,
// and be work for the collector.
type knownKey struct {
	resolved
	raw       []byte
	hash      uint64 // of raw
	pins      int32  // numbers that stand for it
	successor uint32 // index of the key that followed it the last time
}

// cost is what a known key holds: its bytes, itself and the room that the list has
// for more, and its places in a table that has just grown.
func (k *knownKey) cost() int { return costOf(cap(k.raw)) }

// room is what is set aside for the bytes of a key: so much that others like it fit.
func room(raw []byte) int { return (len(raw) + roomUnit - 1) / roomUnit * roomUnit }

const roomUnit = 32

func costOf(room int) int {
	return room + int(unsafe.Sizeof(knownKey{}))*5/4 + 4*int(unsafe.Sizeof(keySlot{}))
}

// keySlot is a place of the table.
type keySlot struct {
	tag uint32 // the hash's other half, so that most misses touch no key
	key uint32 // index into known plus one, 0 for none
}

// keyTable is one publisher's table from raw key bytes, or numbers, to what they
// resolve to: open addressing, linear probing, at most half full.
//
// It never throws out a key to make room within an interval: once full, new keys
// are admitted at each use, which costs their sender, and the hot ones stay. At a
// new interval a table that ran full keeps only what the last one used; the memory goes
// too, for it counts as another publisher's from then on. A flood does not fill it, see
// finder.find.
type keyTable struct {
	seed     maphash.Seed
	slots    []keySlot
	known    []knownKey
	last     uint32   // index of the key that was found last by its bytes
	numbers  []uint32 // by number, index into known plus one
	maxKeys  int      // as many that no number stands for, and as many numbers
	maxBytes int
	share    keyShare // what the known keys and the numbers cost
	pinned   int      // the part of it that is numbers, and keys that they stand for
	full     bool     // something found no room since the last sweep
	cutShort bool     // numbers have been defined beyond the list of them
}

func newKeyTable(maxKeys, maxBytes int, share keyShare) *keyTable {
	k := &keyTable{seed: maphash.MakeSeed(), maxKeys: maxKeys, maxBytes: maxBytes, share: share}
	k.rehash(2 * leastKeys)
	return k
}

// leastKeys is for how many keys, and numbers, there is room at the least: a power
// of two.
const leastKeys = 32

// none is the index of a key that is not known.
const none = -1

// numberBytes is what a number costs, used or not.
const numberBytes = 4

// unlabelled stands instead of a number's key if that found no room. Its spans are counted
// without their labels: the client has sent the key, and need not send it again.
const unlabelled = math.MaxUint32

// find returns the index of the known key with these bytes, or none, and their
// hash.
func (k *keyTable) find(raw []byte) (index int, hash uint64) {
	hash = maphash.Bytes(k.seed, raw)
	tag := uint32(hash >> 32)
	mask := uint32(len(k.slots) - 1)
	for i := uint32(hash) & mask; k.slots[i].key != 0; i = (i + 1) & mask {
		if k.slots[i].tag == tag && bytes.Equal(k.known[k.slots[i].key-1].raw, raw) {
			return int(k.slots[i].key - 1), hash
		}
	}
	return none, hash
}

// predict returns the index of the key that followed the last one when that was found the
// last time, if it has these bytes, or none. Spans repeat in the order in which their code
// runs, and then neither a hash nor a probe is needed.
func (k *keyTable) predict(raw []byte) int {
	if uint(k.last) >= uint(len(k.known)) {
		return none
	}
	next := k.known[k.last].successor
	if uint(next) >= uint(len(k.known)) || !bytes.Equal(k.known[next].raw, raw) {
		return none
	}
	k.last = next
	return int(next)
}

// train notes that a key followed the last one, for predict.
func (k *keyTable) train(index int) {
	if uint(k.last) < uint(len(k.known)) {
		k.known[k.last].successor = uint32(index)
	}
	k.last = uint32(index)
}

// add puts a key in that find did not find, or returns none where there is no room.
func (k *keyTable) add(raw []byte, hash uint64, use keyUse) int {
	if len(k.known) >= 2*k.maxKeys || !k.take(costOf(room(raw)), use) {
		k.full = true
		return none
	}
	if 2*(len(k.known)+1) > len(k.slots) {
		k.rehash(2 * len(k.slots))
	}
	if n := len(k.known); n == cap(k.known) {
		k.known = append(make([]knownKey, 0, max(leastKeys, n+n/4)), k.known...)
	}
	k.known = append(k.known, knownKey{raw: append(make([]byte, 0, room(raw)), raw...), hash: hash})
	k.insert(len(k.known) - 1)
	return len(k.known) - 1
}

// take finds room for so many bytes.
func (k *keyTable) take(cost int, use keyUse) bool {
	return k.share.held+cost <= k.maxBytes && k.share.take(cost, use)
}

// release gives up all keys, and their room with them. The table is not used afterwards.
func (k *keyTable) release() {
	k.slots, k.known, k.numbers = nil, nil, nil
	k.share.shrink(0)
}

// sweep keeps what a number stands for, and what was resolved in the interval of since
// or later. It does nothing to a table with room.
func (k *keyTable) sweep(since uint64) {
	if !k.full {
		return
	}
	k.full = false
	moved := make([]uint32, len(k.known)) // by old index, new index plus one
	count := uint32(0)
	bytes := numberBytes * len(k.numbers)
	for i := range k.known {
		if known := &k.known[i]; known.pins > 0 || known.used >= useIn(since) {
			count++
			moved[i] = count
			bytes += known.cost()
		}
	}
	kept := make([]knownKey, 0, max(leastKeys, count))
	for i, at := range moved {
		if at != 0 {
			kept = append(kept, k.known[i])
		}
	}
	k.known = kept
	k.share.shrink(bytes)
	for number, at := range k.numbers {
		if at != 0 && at != unlabelled {
			k.numbers[number] = moved[at-1]
		}
	}
	slots := 2 * leastKeys
	for slots < 2*len(kept) {
		slots *= 2
	}
	k.rehash(slots)
}

func (k *keyTable) rehash(slots int) {
	k.slots = make([]keySlot, slots)
	for i := range k.known {
		k.insert(i)
	}
}

func (k *keyTable) insert(index int) {
	hash := k.known[index].hash
	mask := uint32(len(k.slots) - 1)
	i := uint32(hash) & mask
	for k.slots[i].key != 0 {
		i = (i + 1) & mask
	}
	k.slots[i] = keySlot{tag: uint32(hash >> 32), key: uint32(index) + 1}
}
