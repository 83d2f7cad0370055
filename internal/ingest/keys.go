package ingest

import (
	"bytes"
	"hash/maphash"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/registry"
)

// resolved is what the hot path needs of a key: which aggregate in which ring.
type resolved struct {
	interval  uint64 // number of the interval plus one that the rest is valid in
	id        registry.KeyID
	hash      uint32
	collapsed registry.Collapsed
}

// knownKey is a key that the connection has used, as it came. It is decoded again
// at its first use in an interval, which costs less than keeping its labels: those
// were three times the memory, most of a hit's cache misses, and work for the
// collector.
type knownKey struct {
	resolved
	raw  []byte
	hash uint64 // of raw
	pins int32  // numbers that stand for it
	next uint32 // index of the key that came after it the last time
}

// cost is what a known key holds: its bytes, itself and the room that the list has
// for more, and its places in a table that has just grown.
func (k *knownKey) cost() int { return costOf(cap(k.raw)) }

// room is what is set aside for the bytes of a key: so much that others like it fit.
func room(raw []byte) int { return (len(raw) + roomUnit - 1) / roomUnit * roomUnit }

const roomUnit = 32

func costOf(room int) int {
	return room + 2 + int(unsafe.Sizeof(knownKey{}))*5/4 + 4*int(unsafe.Sizeof(keySlot{}))
}

// numberBytes is what a number costs, used or not.
const numberBytes = 4

// keySlot is a place of the table.
type keySlot struct {
	tag uint32 // the hash's other half, so that most misses touch no key
	key uint32 // index into known plus one, 0 for none
}

// keys is one connection's table from raw key bytes, or numbers, to what they
// resolve to: open addressing, linear probing, at most half full. It belongs to
// the connection's goroutine.
//
// It never throws out a key to make room within an interval: once full, new keys
// are decoded at each use, which costs their sender, and the hot ones stay. At a
// new interval a table that ran full keeps only what the last one used, so a scan
// is forgotten and the working set is not; the memory goes too, for it counts as
// another connection's from then on.
type keys struct {
	seed     maphash.Seed
	slots    []keySlot
	known    []knownKey
	once     []bool   // by index of known: it came for a number, and once
	marks    []uint16 // of keys that came, see again
	dice     uint64
	numbers  []uint32 // by number, index into known plus one
	maxKeys  int      // as many that no number stands for, and as many numbers
	maxBytes int
	bytes    int // what the known keys and the numbers cost
	pinned   int // the part of it that is numbers, and keys that they stand for
	share    keyShare
	full     bool   // something found no room since the last sweep
	missed   uint   // keys of a flood that came in a row
	last     uint32 // index of the key that came last
	trust    int    // in the next of each: below 0 it is not looked at
}

func newKeys(maxKeys, maxBytes int, share keyShare) *keys {
	k := &keys{seed: maphash.MakeSeed(), maxKeys: maxKeys, maxBytes: maxBytes, share: share}
	k.rehash(2 * leastKeys)
	return k
}

// leastKeys is for how many keys, and numbers, there is room at the least: a power
// of two.
const leastKeys = 32

// none is the index of a key that is not known.
const none = -1

// find returns the index of the known key with these bytes, or none, and their
// hash.
func (k *keys) find(raw []byte) (index int, hash uint64) {
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

// numbered returns the index of the key that a number stands for, or none.
func (k *keys) numbered(number uint32) int {
	if int64(number) >= int64(len(k.numbers)) {
		return none
	}
	return int(k.numbers[number]) - 1
}

// add remembers a key that find did not find, for a number or without one, or
// returns none where there is no room.
func (k *keys) add(raw []byte, hash uint64, use keyUse) int {
	cost := costOf(room(raw))
	if len(k.known) >= 2*k.maxKeys || !k.take(cost, use) {
		k.full = true
		return none
	}
	if 2*(len(k.known)+1) > len(k.slots) {
		k.rehash(2 * len(k.slots))
	}
	if n := len(k.known); n == cap(k.known) {
		k.known = append(make([]knownKey, 0, max(leastKeys, n+n/4)), k.known...)
		k.once = append(make([]bool, 0, cap(k.known)), k.once...)
	}
	k.known = append(k.known, knownKey{raw: append(make([]byte, 0, room(raw)), raw...), hash: hash})
	k.once = append(k.once, false)
	k.insert(len(k.known) - 1)
	return len(k.known) - 1
}

// take finds room. A number is worth more than what tells keys to come again.
func (k *keys) take(cost int, use keyUse) bool {
	for k.bytes+cost > k.maxBytes || !k.share.take(k.bytes, cost, use) {
		if use != keyNumbered || k.marks == nil {
			return false
		}
		k.giveMarks()
	}
	k.bytes += cost
	return true
}

// learn makes a number stand for a key, known or not. It reports false where there
// is no room.
func (k *keys) learn(number uint32, raw []byte) bool {
	index, hash := k.find(raw)
	return k.learnAt(number, raw, index, hash)
}

// learnAt is learn for a key that was looked for.
func (k *keys) learnAt(number uint32, raw []byte, index int, hash uint64) bool {
	switch {
	case index != none:
		k.once[index] = false
	case k.recycle(number, raw, hash):
		return true
	default:
		if index = k.add(raw, hash, keyNumbered); index == none {
			return false
		}
		k.once[index] = !k.again(hash)
	}
	if !k.reach(number) {
		return false
	}
	k.define(number, index)
	return true
}

// reach makes room for a number and some that may follow it.
func (k *keys) reach(number uint32) bool {
	have := len(k.numbers)
	if int64(number) < int64(have) {
		return true
	}
	want := max(int(number)+1, min(max(leastKeys, 2*have), k.maxKeys))
	cost := numberBytes * (want - have)
	if !k.take(cost, keyNumbered) {
		k.full = true
		return false
	}
	k.pinned += cost
	k.numbers = append(make([]uint32, 0, want), k.numbers...)[:want]
	return true
}

// release gives the room of all keys back. The table is not used afterwards.
func (k *keys) release() { k.share.resize(k.bytes, 0) }

// define makes a number within reach stand for a known key.
func (k *keys) define(number uint32, index int) {
	if known := &k.known[index]; known.pins == 0 {
		k.pinned += known.cost()
	}
	k.known[index].pins++
	if earlier := k.numbered(number); earlier != none {
		known := &k.known[earlier]
		if known.pins--; known.pins == 0 {
			k.pinned -= known.cost()
		}
	}
	k.numbers[number] = uint32(index) + 1
}

// worthSweeping says whether a sweep down to the numbered keys would free a good
// part of the table. Where it would not, it is not worth its cost, which is that
// of the whole table: a tracer could ask for one with each key.
func (k *keys) worthSweeping() bool {
	return k.pinned < k.maxBytes-k.maxBytes/8 && k.bytes-k.pinned > k.bytes/8
}

// sweep keeps what a number stands for and what was resolved in the interval of
// since less one or later. It does nothing to a table with room.
func (k *keys) sweep(since uint64) {
	if !k.full {
		return
	}
	k.full = false
	moved := make([]uint32, len(k.known)) // by old index, new index plus one
	count := uint32(0)
	before := k.bytes
	k.bytes = numberBytes*len(k.numbers) + 2*len(k.marks)
	for i := range k.known {
		if known := &k.known[i]; known.pins > 0 || known.interval >= since {
			count++
			moved[i] = count
			k.bytes += known.cost()
		}
	}
	k.share.resize(before, k.bytes)
	kept, once := make([]knownKey, 0, max(leastKeys, count)), make([]bool, 0, max(leastKeys, count))
	for i, at := range moved {
		if at != 0 {
			kept, once = append(kept, k.known[i]), append(once, k.once[i])
		}
	}
	k.known, k.once = kept, once
	for number, at := range k.numbers {
		if at != 0 {
			k.numbers[number] = moved[at-1]
		}
	}
	slots := 2 * leastKeys
	for slots < 2*len(kept) {
		slots *= 2
	}
	k.rehash(slots)
}

func (k *keys) rehash(slots int) {
	k.slots = make([]keySlot, slots)
	for i := range k.known {
		k.insert(i)
	}
}

func (k *keys) insert(index int) {
	hash := k.known[index].hash
	mask := uint32(len(k.slots) - 1)
	i := uint32(hash) & mask
	for k.slots[i].key != 0 {
		i = (i + 1) & mask
	}
	k.slots[i] = keySlot{tag: uint32(hash >> 32), key: uint32(index) + 1}
}
