package admit

import (
	"bytes"
	"hash/maphash"
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/slo"
)

// resolved is the row in which the spans of a key are counted, and the hash that selects a ring for
// them.
type resolved struct {
	lastUse    use // the other fields are valid in its interval
	id         registry.KeyID
	hash       uint32
	collapsed  registry.LabelSet // labels that the key lost
	objectives slo.Set           // objectives that count spans of the key
}

// ignoredKey is the ID of a key whose spans are ignored. The registry never assigns it.
const ignoredKey registry.KeyID = registry.MostKeys

// use identifies a use of a key: the interval, and whether it is the first use in the interval. Uses are
// ordered by time. Both facts are in one number, so that the hot path needs one comparison to see that the
// key does not have to be admitted.
type use uint64

const (
	unused       use = 0              // before the first use
	afterAllUses use = math.MaxUint64 // later than any use
)

// firstUseIn returns the first use of a key in an interval.
func firstUseIn(interval uint64) use { return use(2*interval + 2) }

// laterUseIn returns any use of a key in an interval except for the first one.
func laterUseIn(interval uint64) use { return firstUseIn(interval) + 1 }

// knownKey is a key that the publisher has used. It is found by its bytes: the fingerprint of its
// spans, or the encoded key in the native protocol. Its labels are not cached, since they would take
// three times the memory and be work for the garbage collector. They are made again at the first
// two uses in an interval, when the key is admitted.
type knownKey struct {
	resolved
	keyBytes    []byte
	hash        uint64 // hash of keyBytes
	numberCount int32  // number of key numbers assigned to the key
	successor   uint32 // index of the key that followed this one the last time
}

// cost returns the memory that a known key is charged for, see costOf.
func (k *knownKey) cost() int { return costOf(cap(k.keyBytes)) }

// keyCapacity returns the number of bytes allocated for a key. It is the length of the key, rounded up,
// so that the memory can be reused for a key of similar length.
func keyCapacity(keyBytes []byte) int {
	const unit = 32 // bytes
	units := (len(keyBytes) + unit - 1) / unit
	return units * unit
}

// costOf returns the number of bytes that are charged for one key: allocatedBytes, for the key itself, and
// its share of the list of keys and of the hash table. The list can have a quarter of spare capacity. A
// hash table that was just enlarged has four slots per key.
func costOf(allocatedBytes int) int {
	listBytes := int(unsafe.Sizeof(knownKey{})) * 5 / 4
	slotBytes := 4 * int(unsafe.Sizeof(keySlot{}))
	return allocatedBytes + listBytes + slotBytes
}

// keySlot is a slot of the hash table of known keys. It refers to a key, or is empty.
type keySlot struct {
	upperHash    uint32 // upper half of the hash, so that most misses compare no keys
	indexPlusOne uint32 // index of the key in keyTable.known, plus one; 0 if the slot is empty
}

func (s keySlot) isEmpty() bool { return s.indexPlusOne == 0 }

func (s keySlot) index() int { return int(s.indexPlusOne) - 1 }

// keyTable is the key cache of one publisher. It maps the bytes of keys, and the numbers of the native
// protocol, to aggregates. It is a hash table with open addressing and linear probing, at most half
// full.
//
// Within an interval the table never evicts a key. Once it is full, new keys are admitted at each
// use, which costs their sender time, and frequently used keys stay. At the start of an interval,
// sweep reduces a full table to the keys that the last interval used, and returns their memory to
// the other publishers. A high-cardinality burst does not fill the table, see finder.findNew.
type keyTable struct {
	seed                maphash.Seed
	slots               []keySlot
	known               []knownKey
	measures            int        // number of measures whose values can be counted under each key
	values              []resolved // where these values are counted: one element per known key and measure, see valueOf
	last                uint32     // index of the last key that was found by its bytes
	numbers             []uint32   // for each number, index into known plus one; 0 if undefined, or unlabeled
	maxKeys             int        // limit on numbers, and on keys without a number
	maxBytes            int
	share               keyShare // memory that is charged for the known keys and the numbers
	numberedBytes       int      // part of share that is charged for numbers and numbered keys
	needsSweep          bool     // a key or number did not fit since the last sweep
	hasUnrecordedNumber bool     // a client has defined a number for which the list of numbers had no space
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

// unlabeled is the entry in keyTable.numbers of a number whose key did not fit. Its spans are
// counted without labels: the client has sent the key, and is not asked to send it again.
const unlabeled = math.MaxUint32

// find returns the index of the key with the given bytes, or none if the table has no such key. It also
// returns the hash of the key, which add needs.
func (k *keyTable) find(keyBytes []byte) (index int, hash uint64) {
	hash = maphash.Bytes(k.seed, keyBytes)
	upperHash := uint32(hash >> 32)
	mask := uint32(len(k.slots) - 1)
	for i := uint32(hash) & mask; ; i = (i + 1) & mask {
		slot := k.slots[i]
		if slot.isEmpty() {
			return none, hash
		}
		if slot.upperHash == upperHash && bytes.Equal(k.known[slot.index()].keyBytes, keyBytes) {
			return slot.index(), hash
		}
	}
}

// predict returns the index of the key with the given bytes, or none if its guess is wrong. It guesses that keys
// repeat in the same order. So it only compares keyBytes with the key that followed the last found key the time before,
// which train has recorded. In this way, most keys are found without a hash lookup.
func (k *keyTable) predict(keyBytes []byte) int {
	if !k.isInTable(k.last) {
		return none
	}
	successor := k.known[k.last].successor
	if !k.isInTable(successor) || !bytes.Equal(k.known[successor].keyBytes, keyBytes) {
		return none
	}
	k.last = successor
	return int(successor)
}

// isInTable reports whether a key has the given index. sweep can have removed the key that had it.
func (k *keyTable) isInTable(index uint32) bool { return uint(index) < uint(len(k.known)) }

// train records that the key with the given index followed the last key. The next time, predict finds
// it without a hash lookup.
func (k *keyTable) train(index int) {
	if k.isInTable(k.last) {
		k.known[k.last].successor = uint32(index)
	}
	k.last = uint32(index)
}

// add adds a key that is not in the table, and returns its index. hash is the hash of the key. It returns
// none if the table has the maximum number of keys, or if the memory for keys is used up. The last part of
// the memory is reserved for keys that get a number, as stated by reason; see keyMemory.
func (k *keyTable) add(keyBytes []byte, hash uint64, reason chargeReason) int {
	capacity := keyCapacity(keyBytes)
	cost := costOf(capacity) + k.valueBytes()
	maxKnown := 2 * k.maxKeys // maxKeys with a number, and as many without
	isFull := len(k.known) >= maxKnown
	if isFull || !k.charge(cost, reason) {
		k.needsSweep = true
		return none
	}
	index := len(k.known)
	copied := append(make([]byte, 0, capacity), keyBytes...)
	k.growForOneKey()
	k.known = append(k.known, knownKey{keyBytes: copied, hash: hash})
	k.values = append(k.values, make([]resolved, k.measures)...)
	k.addToSlots(index)
	return index
}

// valueOf returns where values of a measure are counted that belong to spans of the known key with the given index.
// The result is valid until the table changes.
func (k *keyTable) valueOf(index int, measure span.Measure) *resolved {
	return &k.valuesOf(index)[measure-1]
}

// valuesOf returns the elements of k.values for the known key with the given index: one per measure.
func (k *keyTable) valuesOf(index int) []resolved {
	return k.values[index*k.measures : (index+1)*k.measures]
}

// valueBytes returns the memory of the values of a known key. append can double the list.
func (k *keyTable) valueBytes() int { return 2 * k.measures * int(unsafe.Sizeof(resolved{})) }

// growForOneKey enlarges the hash table and the list of keys, if necessary, so that they have space for one more
// key.
func (k *keyTable) growForOneKey() {
	keys := len(k.known) + 1
	isOverHalfFull := 2*keys > len(k.slots)
	if isOverHalfFull {
		k.rehash(2 * len(k.slots))
	}
	if keys > cap(k.known) {
		newCapacity := max(leastKeys, len(k.known)*5/4) // append would double a short list
		k.known = append(make([]knownKey, 0, newCapacity), k.known...)
	}
}

// charge adds cost to the memory of the table. It returns false, and adds nothing, if this would exceed
// the limit of the publisher or that of all publishers.
func (k *keyTable) charge(cost int, reason chargeReason) bool {
	return k.share.charged+cost <= k.maxBytes && k.share.charge(cost, reason)
}

// release releases all keys and the memory that is charged for them. The table must not be used
// afterwards.
func (k *keyTable) release() {
	k.slots, k.known, k.values, k.numbers = nil, nil, nil, nil
	k.share.shrink(0)
}

// sweep removes the keys that have no number and were last used before oldest. The indexes of the remaining keys
// change. sweep does nothing if the table has had space for all keys since the last call.
func (k *keyTable) sweep(oldest use) {
	if k.needsSweep {
		k.removeUsedBefore(oldest)
	}
}

// removeUnnumbered removes all keys to which the client has not assigned a number. The indexes of the remaining
// keys change.
func (k *keyTable) removeUnnumbered() { k.removeUsedBefore(afterAllUses) }

// removeUsedBefore removes the keys that have no number and were last used before oldest, and returns their memory
// to the other publishers.
func (k *keyTable) removeUsedBefore(oldest use) {
	k.needsSweep = false
	k.removeFromKnown(oldest)
	k.share.shrink(k.usedBytes())
	k.rehash(slotsFor(len(k.known)))
}

// usedBytes returns the memory that is charged for the keys, their values and the list of numbers.
func (k *keyTable) usedBytes() int {
	bytes := numberBytes*len(k.numbers) + len(k.known)*k.valueBytes()
	for i := range k.known {
		bytes += k.known[i].cost()
	}
	return bytes
}

// slotsFor returns the size of a hash table, a power of two, that is at most half full with the given
// number of keys.
func slotsFor(keys int) int {
	slots := 2 * leastKeys
	for slots < 2*keys {
		slots *= 2
	}
	return slots
}

// removeFromKnown removes the keys that have no number and were last used before oldest from k.known, and their values
// from k.values. The caller must call rehash afterwards, because the indexes of the remaining keys change.
func (k *keyTable) removeFromKnown(oldest use) {
	isKept := func(key *knownKey) bool { return key.numberCount > 0 || key.lastUse >= oldest }
	count := 0
	for i := range k.known {
		if isKept(&k.known[i]) {
			count++
		}
	}
	remaining := make([]knownKey, 0, max(leastKeys, count))
	remainingValues := make([]resolved, 0, cap(remaining)*k.measures) // one per key and measure
	newIndexes := make([]int32, len(k.known))                         // by old index; unused for removed keys
	for i := range k.known {
		if isKept(&k.known[i]) {
			newIndexes[i] = int32(len(remaining))
			remaining = append(remaining, k.known[i])
			remainingValues = append(remainingValues, k.valuesOf(i)...)
		}
	}
	k.known, k.values = remaining, remainingValues
	k.updateNumbers(newIndexes)
}

// updateNumbers makes the numbers refer to the new indexes of their keys. newIndexes contains the new index of each
// key, by its old index.
func (k *keyTable) updateNumbers(newIndexes []int32) {
	for number := range k.numbers {
		oldIndex := k.indexOfNumber(uint32(number))
		if oldIndex != none {
			k.numbers[number] = indexPlusOne(int(newIndexes[oldIndex]))
		}
	}
}

// rehash replaces the hash table by one with the given number of slots, a power of two.
func (k *keyTable) rehash(slots int) {
	k.slots = make([]keySlot, slots)
	for i := range k.known {
		k.addToSlots(i)
	}
}

// addToSlots adds the known key with the given index to the hash table.
func (k *keyTable) addToSlots(index int) {
	hash := k.known[index].hash
	mask := uint32(len(k.slots) - 1)
	i := uint32(hash) & mask
	for !k.slots[i].isEmpty() {
		i = (i + 1) & mask
	}
	k.slots[i] = keySlot{upperHash: uint32(hash >> 32), indexPlusOne: indexPlusOne(index)}
}

// indexOfNumber returns the index of the key that a number is assigned to, or none.
func (k *keyTable) indexOfNumber(number uint32) int {
	if uint64(number) >= uint64(len(k.numbers)) || k.numbers[number] == unlabeled {
		return none
	}
	return int(k.numbers[number]) - 1
}

// isUnlabeled reports whether a client has defined the number, but there was no memory for the key. It
// also returns true for a number beyond the end of the list if there was once no memory to extend the
// list.
func (k *keyTable) isUnlabeled(number uint32) bool {
	if uint64(number) >= uint64(len(k.numbers)) {
		return k.hasUnrecordedNumber
	}
	return k.numbers[number] == unlabeled
}

// markUnlabeled records that a client defined a number for a key, but there was no memory for the key.
// Spans with the number are counted without labels.
func (k *keyTable) markUnlabeled(number uint32) {
	hasSpace := k.growNumbersTo(number)
	if !hasSpace {
		k.hasUnrecordedNumber = true // from now on, isUnlabeled returns true for every number beyond the list
		return
	}
	k.releaseNumber(number) // of the key that it stood for before
	k.numbers[number] = unlabeled
}

// assign assigns a number to the key with the given bytes, and adds the key if it is not in the table yet. index
// and hash must be the result of find for the key. assign returns false if there is no memory for the key or
// the number.
func (k *keyTable) assign(number uint32, keyBytes []byte, index int, hash uint64) bool {
	isNew := index == none
	if isNew {
		// If the client redefines the number, the new key can take the place of the key that had it before.
		hasReplaced := k.replaceKeyOf(number, keyBytes, hash)
		if hasReplaced {
			return true
		}
		index = k.add(keyBytes, hash, forNumberedKey)
		if index == none { // there is no memory for the key
			return false
		}
	}
	if !k.growNumbersTo(number) {
		return false
	}
	k.setNumber(number, index)
	return true
}

// replaceKeyOf replaces the key that has a number by another one, in the same memory, so that a client can
// redefine a number any number of times. It changes nothing and returns false if no key has the number, if the key has
// more than one number, or if the memory is too small for the new key.
func (k *keyTable) replaceKeyOf(number uint32, keyBytes []byte, hash uint64) bool {
	index := k.indexOfNumber(number)
	if index == none {
		return false
	}
	replaced := &k.known[index]
	if replaced.numberCount > 1 || len(keyBytes) > cap(replaced.keyBytes) {
		return false
	}
	k.removeFromSlots(index) // k.numbers still contains the index
	copied := append(replaced.keyBytes[:0], keyBytes...)
	*replaced = knownKey{keyBytes: copied, hash: hash, numberCount: 1}
	k.addToSlots(index)
	return true
}

// removeFromSlots removes the known key with the given index from the hash table. It uses backward shift deletion: find
// stops at an empty slot, so removeFromSlots fills the gap with a later key that find could not reach otherwise.
func (k *keyTable) removeFromSlots(index int) {
	mask := uint32(len(k.slots) - 1)
	gap := uint32(k.known[index].hash) & mask
	for k.slots[gap].index() != index {
		gap = (gap + 1) & mask
	}
	for i := (gap + 1) & mask; !k.slots[i].isEmpty(); i = (i + 1) & mask {
		key := &k.known[k.slots[i].index()]
		start := uint32(key.hash) & mask // slot where find begins to search for the key
		distanceFromStart := (i - start) & mask
		distanceFromGap := (i - gap) & mask
		passesGap := distanceFromStart >= distanceFromGap // find passes the gap on the way from start to i
		if passesGap {
			k.slots[gap] = k.slots[i]
			gap = i
		}
	}
	k.slots[gap] = keySlot{}
}

// growNumbersTo extends k.numbers, the list of the numbers that the client has given to keys, up to the given
// number. It returns false if there is no memory.
func (k *keyTable) growNumbersTo(number uint32) bool {
	oldLength := len(k.numbers)
	if int64(number) < int64(oldLength) {
		return true
	}
	newLength := k.lengthFor(int(number))
	cost := numberBytes * (newLength - oldLength)
	if !k.charge(cost, forNumberedKey) {
		k.needsSweep = true // sweep frees memory at the start of the next interval
		return false
	}
	k.numberedBytes += cost
	grown := make([]uint32, newLength)
	copy(grown, k.numbers)
	if k.hasUnrecordedNumber { // the client has perhaps defined one of the added numbers, but it is unknown which
		for i := oldLength; i < newLength; i++ {
			grown[i] = unlabeled
		}
	}
	k.numbers = grown
	return true
}

// lengthFor returns the length of a list of numbers that is extended up to the given number: twice the old length
// if that is enough.
func (k *keyTable) lengthFor(number int) int {
	doubled := max(leastKeys, 2*len(k.numbers))
	return max(number+1, min(doubled, k.maxKeys))
}

// indexPlusOne returns the form in which the table stores the index of a key. It is never 0, which stands for no key.
func indexPlusOne(index int) uint32 { return uint32(index) + 1 }

// setNumber assigns a number to the known key with the given index. If another key has the number, that key loses it. A
// key can have several numbers, and stays in the table as long as it has one. k.numbers must be long enough to contain
// the number.
func (k *keyTable) setNumber(number uint32, index int) {
	k.releaseNumber(number)
	known := &k.known[index]
	known.numberCount++
	isFirstNumber := known.numberCount == 1
	if isFirstNumber {
		k.numberedBytes += known.cost()
	}
	k.numbers[number] = indexPlusOne(index)
}

// releaseNumber makes a number undefined. If a key had the number, and has no other, sweep can remove the key from now
// on, so its memory is no longer part of numberedBytes.
func (k *keyTable) releaseNumber(number uint32) {
	index := k.indexOfNumber(number)
	if index == none {
		return
	}
	known := &k.known[index]
	known.numberCount--
	wasLastNumber := known.numberCount == 0
	if wasLastNumber {
		k.numberedBytes -= known.cost()
	}
	k.numbers[number] = 0
}

// isSweepWorthwhile reports whether removing all keys without a number would free at least an eighth of the
// table. Without this condition, a tracer could cause a sweep, which reads the whole table, with each
// key that it defines.
func (k *keyTable) isSweepWorthwhile() bool {
	hasRoomForOthers := k.numberedBytes < k.maxBytes-k.maxBytes/8
	removable := k.share.charged - k.numberedBytes
	return hasRoomForOthers && removable > k.share.charged/8
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

// chargeReason is the reason why memory is charged.
type chargeReason uint8

const (
	forUnnumberedKey chargeReason = iota // a span was sent with the key's bytes or fingerprint
	forNumberedKey                       // the key is about to get a number
)

// keyShare is one publisher's account in the keyMemory.
type keyShare struct {
	memory   *keyMemory
	reserved int64 // bytes reserved for the publisher; 0 unless it is a connection
	charged  int   // bytes charged to the publisher
}

// charge adds cost to the number of bytes that the publisher uses. Bytes in excess of those reserved for the
// publisher are taken from the memory that all publishers have in common. If too little of that is free, charge
// changes nothing and returns false. Keys without a number can take only three quarters of the common memory.
func (s *keyShare) charge(cost int, reason chargeReason) bool {
	commonLimit := s.memory.common
	if reason == forUnnumberedKey {
		commonLimit -= commonLimit / 4
	}
	newCharged := s.charged + cost
	addedCommon := s.commonPart(newCharged) - s.commonPart(s.charged)
	if addedCommon > 0 {
		taken := s.memory.taken.Add(addedCommon) // before the check, because other publishers take memory, too
		if taken > commonLimit {
			s.memory.taken.Add(-addedCommon)
			return false
		}
	}
	s.charged = newCharged
	return true
}

// shrink reduces the memory that is charged to the publisher to the given number of bytes.
func (s *keyShare) shrink(bytes int) {
	s.memory.taken.Add(s.commonPart(bytes) - s.commonPart(s.charged))
	s.charged = bytes
}

// commonPart returns how many of the given bytes exceed those reserved for the publisher.
func (s *keyShare) commonPart(bytes int) int64 { return max(0, int64(bytes)-s.reserved) }
