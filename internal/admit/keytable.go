package admit

import (
	"bytes"
	"hash/maphash"
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/registry"
)

// resolved is what the hot path needs to know about a key: its aggregate, and the hash that routes
// it to a ring.
type resolved struct {
	used      use // last use; the other fields are valid in its interval
	id        registry.KeyID
	hash      uint32
	collapsed registry.LabelSet // labels that the key lost
}

// ignoredKey is the ID of a key whose spans are ignored. The registry never assigns it.
const ignoredKey registry.KeyID = registry.MostKeys

// use is the interval of a key's last use, and whether that was the first use in the interval. It
// is 0 before the first use. Both facts are in one number, so that the hot path needs one
// comparison to see that the key does not have to be admitted.
type use uint64

// useIn returns the first use in an interval, given the interval's number plus one.
func useIn(interval uint64) use { return use(interval << 1) }

// second returns a use after the first one in the same interval.
func (u use) second() use { return u | 1 }

// isIn reports whether u is in an interval, given the interval's number plus one.
func (u use) isIn(interval uint64) bool { return uint64(u>>1) == interval }

// knownKey is a key that the publisher has used. It is found by its cache key: the fingerprint of
// its spans, or its bytes in the native protocol. Its labels are not cached, since they would take
// three times the memory and be work for the garbage collector. They are made again at the first
// two uses in an interval, when the key is admitted.
type knownKey struct {
	resolved
	cacheKey  []byte
	hash      uint64 // hash of cacheKey
	pins      int32  // how many numbers are assigned to the key
	successor uint32 // index of the key that followed this one the last time
}

// cost returns the memory that a known key is charged for, see costOf.
func (k *knownKey) cost() int { return costOf(cap(k.cacheKey)) }

// keyCapacity returns the capacity that is allocated for the bytes of a key. It is rounded up to a
// multiple of keyUnit, so that replace can reuse it for a key of similar length.
func keyCapacity(cacheKey []byte) int { return (len(cacheKey) + keyUnit - 1) / keyUnit * keyUnit }

const keyUnit = 32

// costOf returns the memory of a known key with the given capacity. It includes a quarter of a knownKey for
// the spare capacity of keyTable.known, and the four slots per key of a table that was just enlarged.
func costOf(capacity int) int {
	return capacity + int(unsafe.Sizeof(knownKey{}))*5/4 + 4*int(unsafe.Sizeof(keySlot{}))
}

// keySlot is a slot of the hash table.
type keySlot struct {
	tag uint32 // upper half of the hash, so that most misses compare no keys
	key uint32 // index into known plus one; 0 if the slot is empty
}

// keyTable is the key cache of one publisher. It maps cache keys, and the numbers of the native
// protocol, to aggregates. It is a hash table with open addressing and linear probing, at most half
// full.
//
// Within an interval the table never evicts a key. Once it is full, new keys are admitted at each
// use, which costs their sender time, and frequently used keys stay. At the start of an interval,
// sweep reduces a full table to the keys that the last interval used, and returns their memory to
// the other publishers. A high-cardinality burst does not fill the table, see finder.find.
type keyTable struct {
	seed     maphash.Seed
	slots    []keySlot
	known    []knownKey
	last     uint32   // index of the last key that was found by its bytes
	numbers  []uint32 // for each number, index into known plus one; 0 if undefined, or unlabelled
	maxKeys  int      // limit on numbers, and on keys without a number
	maxBytes int
	share    keyShare // memory that is charged for the known keys and the numbers
	pinned   int      // part of share that is charged for numbers and numbered keys
	full     bool     // a key or number did not fit since the last sweep
	cutShort bool     // a number beyond the list of numbers was defined, but did not fit
}

// newKeyTable returns an empty table whose memory is charged to share.
func newKeyTable(maxKeys, maxBytes int, share keyShare) *keyTable {
	k := &keyTable{seed: maphash.MakeSeed(), maxKeys: maxKeys, maxBytes: maxBytes, share: share}
	k.rehash(2 * leastKeys)
	return k
}

// leastKeys is the minimum capacity for keys and for numbers. It is a power of two.
const leastKeys = 32

// none is the index of an unknown key.
const none = -1

// numberBytes is the size of an entry of keyTable.numbers.
const numberBytes = 4

// unlabelled is the entry in keyTable.numbers of a number whose key did not fit. Its spans are
// counted without labels: the client has sent the key, and is not asked to send it again.
const unlabelled = math.MaxUint32

// find returns the index of the known key with these bytes, or none, and the hash of the bytes.
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

// predict returns the index of the key that followed the last key the previous time, if its bytes
// equal cacheKey; otherwise none. Spans repeat in the order in which the application creates them,
// so most keys need neither a hash nor a probe.
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

// train records for predict that a key followed the last one.
func (k *keyTable) train(index int) {
	if uint(k.last) < uint(len(k.known)) {
		k.known[k.last].successor = uint32(index)
	}
	k.last = uint32(index)
}

// add adds a key that find did not find. It returns the key's index, or none if there is no room.
func (k *keyTable) add(cacheKey []byte, hash uint64, use keyUse) int {
	if len(k.known) >= 2*k.maxKeys || !k.charge(costOf(keyCapacity(cacheKey)), use) {
		k.full = true
		return none
	}
	if 2*(len(k.known)+1) > len(k.slots) {
		k.rehash(2 * len(k.slots))
	}
	if n := len(k.known); n == cap(k.known) {
		k.known = append(make([]knownKey, 0, max(leastKeys, n+n/4)), k.known...)
	}
	k.known = append(k.known, knownKey{cacheKey: append(make([]byte, 0, keyCapacity(cacheKey)), cacheKey...), hash: hash})
	k.insert(len(k.known) - 1)
	return len(k.known) - 1
}

// charge charges cost bytes to the publisher, and reports whether the limits allow it.
func (k *keyTable) charge(cost int, use keyUse) bool {
	return k.share.held+cost <= k.maxBytes && k.share.charge(cost, use)
}

// release releases all keys and the memory that is charged for them. The table must not be used
// afterwards.
func (k *keyTable) release() {
	k.slots, k.known, k.numbers = nil, nil, nil
	k.share.shrink(0)
}

// sweep removes all keys except the numbered ones and those that were used in the interval since or
// later. It does nothing unless a key or number did not fit since the last sweep.
func (k *keyTable) sweep(since uint64) {
	if !k.full {
		return
	}
	k.full = false
	newIndex := make([]uint32, len(k.known)) // for each old index, new index plus one; 0 if removed
	count := uint32(0)
	bytes := numberBytes * len(k.numbers)
	for i := range k.known {
		if known := &k.known[i]; known.pins > 0 || known.used >= useIn(since) {
			count++
			newIndex[i] = count
			bytes += known.cost()
		}
	}
	kept := make([]knownKey, 0, max(leastKeys, count))
	for i, index := range newIndex {
		if index != 0 {
			kept = append(kept, k.known[i])
		}
	}
	k.known = kept
	k.share.shrink(bytes)
	for number, old := range k.numbers {
		if old != 0 && old != unlabelled {
			k.numbers[number] = newIndex[old-1]
		}
	}
	slots := 2 * leastKeys
	for slots < 2*len(kept) {
		slots *= 2
	}
	k.rehash(slots)
}

// rehash replaces the hash table by one with the given number of slots, a power of two.
func (k *keyTable) rehash(slots int) {
	k.slots = make([]keySlot, slots)
	for i := range k.known {
		k.insert(i)
	}
}

// insert adds the known key with this index to the hash table.
func (k *keyTable) insert(index int) {
	hash := k.known[index].hash
	mask := uint32(len(k.slots) - 1)
	i := uint32(hash) & mask
	for k.slots[i].key != 0 {
		i = (i + 1) & mask
	}
	k.slots[i] = keySlot{tag: uint32(hash >> 32), key: uint32(index) + 1}
}

// numbered returns the index of the key that a number is assigned to, or none.
func (k *keyTable) numbered(number uint32) int {
	if uint64(number) >= uint64(len(k.numbers)) || k.numbers[number] == unlabelled {
		return none
	}
	return int(k.numbers[number]) - 1
}

// isUnlabelled reports whether a number is defined but its key did not fit. If the list of numbers
// itself did not fit, that is assumed for all numbers beyond the list.
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

// assign assigns a number to a key. index and hash are the result of find for cacheKey; if index is
// none, the key is added. It reports false if there is no room.
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

// replace assigns a number to an unknown key by overwriting the key that the number is assigned to.
// It reports false if the number is not assigned, if another number is assigned to the old key too,
// or if the new key does not fit in the capacity of the old one. So a tracer that redefines a
// number for each of its spans takes no more memory.
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

// remove removes a key from the hash table. It moves later keys of the same probe sequence into the
// gap, so that find still reaches them.
func (k *keyTable) remove(index int) {
	mask := uint32(len(k.slots) - 1)
	hole := uint32(k.known[index].hash) & mask
	for k.slots[hole].key != uint32(index)+1 {
		hole = (hole + 1) & mask
	}
	for i := (hole + 1) & mask; k.slots[i].key != 0; i = (i + 1) & mask {
		home := uint32(k.known[k.slots[i].key-1].hash) & mask
		if (i-home)&mask >= (i-hole)&mask { // home is at or before hole
			k.slots[hole] = k.slots[i]
			hole = i
		}
	}
	k.slots[hole] = keySlot{}
}

// growTo extends the list of numbers so that it contains number, and reports whether that fits. If
// an extension failed before, it is unknown which of the new numbers were defined in the meantime,
// so all of them become unlabelled.
func (k *keyTable) growTo(number uint32) bool {
	have := len(k.numbers)
	if int64(number) < int64(have) {
		return true
	}
	want := max(int(number)+1, min(max(leastKeys, 2*have), k.maxKeys))
	cost := numberBytes * (want - have)
	if !k.charge(cost, keyNumbered) {
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

// pin assigns a number within the list of numbers to a known key.
func (k *keyTable) pin(number uint32, index int) {
	if known := &k.known[index]; known.pins == 0 {
		k.pinned += known.cost()
	}
	k.known[index].pins++
	k.unpin(number)
	k.numbers[number] = uint32(index) + 1
}

// unpin removes the assignment of a number, if it has one.
func (k *keyTable) unpin(number uint32) {
	if index := k.numbered(number); index != none {
		known := &k.known[index]
		if known.pins--; known.pins == 0 {
			k.pinned -= known.cost()
		}
	}
}

// worthSweeping reports whether removing all keys without a number would free at least an eighth of
// the table. Otherwise a sweep is not worth its cost, which is linear in the size of the table: a
// tracer could cause a sweep with each key that it defines.
func (k *keyTable) worthSweeping() bool {
	return k.pinned < k.maxBytes-k.maxBytes/8 && k.share.held-k.pinned > k.share.held/8
}

// keyMemory is the memory that the key tables of all publishers may use together. Half of it is
// reserved in equal shares, one per possible connection, so that no connection is left without. The
// other half is common: a connection that has used up its share takes more from there, and so do
// publishers that are not connections. The last quarter of the common part is reserved for keys
// with numbers: spans of a number that does not fit lose their labels, while keys without a number
// can be resolved at each use.
type keyMemory struct {
	share  int64        // bytes reserved for each connection
	common int64        // bytes for all publishers
	taken  atomic.Int64 // used bytes of common
}

// newKeyMemory divides a number of bytes for up to the given number of connections.
func newKeyMemory(bytes, connections int) keyMemory {
	share := int64(bytes) / 2 / int64(connections)
	return keyMemory{share: share, common: int64(bytes) - share*int64(connections)}
}

// keyUse is the reason why a key is added to a table.
type keyUse uint8

const (
	keyCached   keyUse = iota // a span was sent with the key's bytes or fingerprint
	keyNumbered               // the key is about to get a number
)

// keyShare is one publisher's account in the keyMemory.
type keyShare struct {
	memory *keyMemory
	own    int64 // bytes reserved for the publisher; 0 unless it is a connection
	held   int   // bytes charged to the publisher
}

// charge charges cost more bytes to the publisher: first to its own share, then to the common
// memory. It reports false, and charges nothing, if the common memory is used up.
func (s *keyShare) charge(cost int, use keyUse) bool {
	more := s.commonPart(s.held+cost) - s.commonPart(s.held)
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

// shrink reduces the bytes that are charged to the publisher.
func (s *keyShare) shrink(to int) {
	s.memory.taken.Add(s.commonPart(to) - s.commonPart(s.held))
	s.held = to
}

// commonPart returns how many of the given bytes exceed the publisher's own share.
func (s *keyShare) commonPart(bytes int) int64 { return max(0, int64(bytes)-s.own) }
