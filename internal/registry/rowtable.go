package registry

import "unsafe"

// rowTable finds the keys of one interval by their words, which lie one behind the other
// in one list without pointers. Like its hashTable it grows under the Registry's lock and
// is searched without it.
type rowTable struct {
	list  publishedList[row] // by KeyID
	words publishedList[uint32]
	ids   hashTable
}

// row is where the words of a key lie. It doesn't change once its number can be found.
type row struct {
	hash      uint64 // of the words
	from, to  uint32
	partition uint32 // hash that decides the partition
	identity  uint64 // hash of the key, the same in every interval
}

// init makes the zero table an empty one.
func (t *rowTable) init() {
	t.ids.hashOf = func(id uint32) uint64 { return t.list.items[id].hash }
	t.ids.init()
}

// find returns the id of the key with these words, and its partition's hash. The hash
// is that of hashWords.
func (t *rowTable) find(hash uint64, words []uint32) (id KeyID, partition uint32, ok bool) {
	for number := range t.ids.candidates(hash) {
		r := t.list.at(number)
		if equalWords(t.words.part(r.from, r.to), words) {
			return KeyID(number), r.partition, true
		}
	}
	return 0, 0, false
}

// put adds the words of the next id.
func (t *rowTable) put(id KeyID, added row, words []uint32) {
	added.from = uint32(len(t.words.items))
	t.words.append(words...)
	added.to = uint32(len(t.words.items))
	t.list.append(added)
	t.ids.put(added.hash, uint32(id))
}

// wordsOf are the words of a key, none of one that is not found by its words.
func (t *rowTable) wordsOf(id KeyID) []uint32 {
	r := t.list.at(uint32(id))
	return t.words.part(r.from, r.to)
}

// skip leaves the next id to a key that is not found by its words.
func (t *rowTable) skip() { t.list.append(row{}) }

// rowBytes is the memory of a row with its key, the capacity that the lists have for
// more, its slots in a table that has just grown, and what the next interval knows of it,
// without the texts of its labels.
func rowBytes(words []uint32) int {
	const tag = int(unsafe.Sizeof(""))
	lists := int(unsafe.Sizeof(row{})) + int(unsafe.Sizeof(KeyEntry{})) + 4*len(words)
	return lists*5/4 + 4*slotBytes + setBytes + tag*(len(words)-wordTags)
}
