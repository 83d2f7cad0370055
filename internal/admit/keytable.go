package admit

import (
	"bytes"
	"hash/maphash"
	"math"
	"sync/atomic"
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

// knownKey is a key that the publisher has used, found by its cache key: the fingerprint of its spans, or its bytes
// in the native protocol. It is admitted at its first two uses in an interval, for which its labels are made again:
// kept, they would take three times the memory, and be work for the garbage collector.
type knownKey struct {
	resolved
	cacheKey  []byte
	hash      uint64 // of cacheKey
	pins      int32  // numbers that stand for it
	successor uint32 // index of the key that followed it the last time
}

// cost is what a known key holds: its bytes, itself and the room that the list has
// for more, and its places in a table that has just grown.
func (k *knownKey) cost() int { return costOf(cap(k.cacheKey)) }

// room is what is set aside for the bytes of a key: so much that others like it fit.
func room(cacheKey []byte) int { return (len(cacheKey) + roomUnit - 1) / roomUnit * roomUnit }

const roomUnit = 32

func costOf(room int) int {
	return room + int(unsafe.Sizeof(knownKey{}))*5/4 + 4*int(unsafe.Sizeof(keySlot{}))
}

// keySlot is a place of the table.
type keySlot struct {
	tag uint32 // the hash's other half, so that most misses touch no key
	key uint32 // index into known plus one, 0 for none
}

// keyTable is the key cache of one publisher: a table from cache keys, or numbers, to the aggregates that
// they resolve to, with open addressing, linear probing, at most half full.
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
func (k *keyTable) find(cacheKey []byte) (index int, hash uint64) {
	hash = maphash.Bytes(k.seed, cacheKey)
	tag := uint32(hash >> 32)
	mask := uint32(len(k.slots) - 1)
	for i := uint32(hash) & mask; k.slots[i].key != 0; i = (i + 1) & mask {
		if k.slots[i].tag == tag && bytes.Equal(k.known[k.slots[i].key-1].cacheKey, cacheKey) {
			return int(k.slots[i].key - 1), hash
		}
	}
	return none, hash
}

// predict returns the index of the key that followed the last one when that was found the
// last time, if it has these bytes, or none. Spans repeat in the order in which their code
// runs, and then neither a hash nor a probe is needed.
func (k *keyTable) predict(cacheKey []byte) int {
	if uint(k.last) >= uint(len(k.known)) {
		return none
	}
	next := k.known[k.last].successor
	if uint(next) >= uint(len(k.known)) || !bytes.Equal(k.known[next].cacheKey, cacheKey) {
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
func (k *keyTable) add(cacheKey []byte, hash uint64, use keyUse) int {
	if len(k.known) >= 2*k.maxKeys || !k.take(costOf(room(cacheKey)), use) {
		k.full = true
		return none
	}
	if 2*(len(k.known)+1) > len(k.slots) {
		k.rehash(2 * len(k.slots))
	}
	if n := len(k.known); n == cap(k.known) {
		k.known = append(make([]knownKey, 0, max(leastKeys, n+n/4)), k.known...)
	}
	k.known = append(k.known, knownKey{cacheKey: append(make([]byte, 0, room(cacheKey)), cacheKey...), hash: hash})
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

// numbered returns the index of the key that a number stands for, or none.
func (k *keyTable) numbered(number uint32) int {
	if uint64(number) >= uint64(len(k.numbers)) || k.numbers[number] == unlabelled {
		return none
	}
	return int(k.numbers[number]) - 1
}

// isUnlabelled reports whether a number without a key was defined. If the list of numbers
// itself found no room, all beyond it are taken for such.
func (k *keyTable) isUnlabelled(number uint32) bool {
	if uint64(number) >= uint64(len(k.numbers)) {
		return k.cutShort
	}
	return k.numbers[number] == unlabelled
}

// disown makes a number unlabelled.
func (k *keyTable) disown(number uint32) {
	if !k.growTo(number) {
		k.cutShort = true
		return
	}
	k.unpin(number)
	k.numbers[number] = unlabelled
}

// assign makes a number stand for a key that find has found, or has not. It reports false
// where there is no room.
func (k *keyTable) assign(number uint32, cacheKey []byte, index int, hash uint64) bool {
	if index == none {
		if k.replace(number, cacheKey, hash) {
			return true
		}
		if index = k.add(cacheKey, hash, keyNumbered); index == none {
			return false
		}
	}
	if !k.growTo(number) {
		return false
	}
	k.pin(number, index)
	return true
}

// replace makes a number stand for a key that is not known in the place of the key that
// it stood for, if no other number stands for that one, and the place is large enough. So
// a tracer that defines a number anew for each of its spans takes no memory for that.
func (k *keyTable) replace(number uint32, cacheKey []byte, hash uint64) bool {
	index := k.numbered(number)
	if index == none || k.known[index].pins > 1 || len(cacheKey) > cap(k.known[index].cacheKey) {
		return false
	}
	k.remove(index)
	k.known[index] = knownKey{cacheKey: append(k.known[index].cacheKey[:0], cacheKey...), hash: hash, pins: 1}
	k.insert(index)
	return true
}

// remove takes a key's place out of the table, and lets those that stand behind it for
// want of their own place move up.
func (k *keyTable) remove(index int) {
	mask := uint32(len(k.slots) - 1)
	hole := uint32(k.known[index].hash) & mask
	for k.slots[hole].key != uint32(index)+1 {
		hole = (hole + 1) & mask
	}
	for at := (hole + 1) & mask; k.slots[at].key != 0; at = (at + 1) & mask {
		home := uint32(k.known[k.slots[at].key-1].hash) & mask
		if (at-home)&mask >= (at-hole)&mask {
			k.slots[hole] = k.slots[at]
			hole = at
		}
	}
	k.slots[hole] = keySlot{}
}

// growTo makes room for a number and some that may follow it. Which of them were defined while
// there was no room is not known, so all are taken for such.
func (k *keyTable) growTo(number uint32) bool {
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
	for i := have; k.cutShort && i < want; i++ {
		k.numbers[i] = unlabelled
	}
	return true
}

// pin makes a number that there is room for stand for a known key.
func (k *keyTable) pin(number uint32, index int) {
	if known := &k.known[index]; known.pins == 0 {
		k.pinned += known.cost()
	}
	k.known[index].pins++
	k.unpin(number)
	k.numbers[number] = uint32(index) + 1
}

// unpin takes the number from the key that it stands for, if it does for any.
func (k *keyTable) unpin(number uint32) {
	if earlier := k.numbered(number); earlier != none {
		known := &k.known[earlier]
		if known.pins--; known.pins == 0 {
			k.pinned -= known.cost()
		}
	}
}

// worthSweeping says whether a sweep down to the numbered keys would free a good
// part of the table. Where it would not, it is not worth its cost, which is that
// of the whole table: a tracer could ask for one with each key.
func (k *keyTable) worthSweeping() bool {
	return k.pinned < k.maxBytes-k.maxBytes/8 && k.share.held-k.pinned > k.share.held/8
}

// keyMemory is what the key tables of all publishers may hold together. Half of it is set
// apart in equal shares, one for each connection that may come, so that none can be left
// without. The other half is common: whoever has used its share up takes from it, and a
// publisher that is no connection has only that. The last quarter of the common part is
// for keys with numbers, since those that have none can be resolved again, and the spans
// of a number that finds no room lose their labels.
type keyMemory struct {
	share  int64 // of each connection
	common int64
	taken  atomic.Int64 // of the common part
}

func newKeyMemory(bytes, connections int) keyMemory {
	share := int64(bytes) / 2 / int64(connections)
	return keyMemory{share: share, common: int64(bytes) - share*int64(connections)}
}

// keyUse is what a key is put into a table for.
type keyUse uint8

const (
	keyCached   keyUse = iota // it has come by its bytes
	keyNumbered               // it is about to get a number
)

// keyShare is one publisher's part of the memory, and the only place that knows how much
// of it the publisher holds: what its table says it holds is what it is charged for.
type keyShare struct {
	memory *keyMemory
	own    int64
	held   int
}

// take finds room for cost bytes more than the publisher holds, and charges for them.
func (s *keyShare) take(cost int, use keyUse) bool {
	more := s.beyond(s.held+cost) - s.beyond(s.held)
	limit := s.memory.common
	if use == keyCached {
		limit -= limit / 4
	}
	if more > 0 && s.memory.taken.Add(more) > limit {
		s.memory.taken.Add(-more)
		return false
	}
	s.held += cost
	return true
}

// shrink makes known that the publisher holds only so much.
func (s *keyShare) shrink(to int) {
	s.memory.taken.Add(s.beyond(to) - s.beyond(s.held))
	s.held = to
}

// beyond is the part of what a publisher holds that is not its own share.
func (s *keyShare) beyond(holds int) int64 { return max(0, int64(holds)-s.own) }
