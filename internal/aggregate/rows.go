package aggregate

import (
	"bytes"
	"hash/maphash"
	"unsafe"
)

// rows are the keys of one interval as words, found by their hash. Their words lie
// one behind the other in one slice without pointers.
type rows struct {
	places places
	list   []rowKey // by KeyID
	words  []uint32
	last   KeyID // found or put last
}

type rowKey struct {
	hash      uint64
	from, to  uint32 // in words
	partition uint32
}

func newRows() rows { return rows{places: newPlaces()} }

// find looks at the last one first: the keys of a flood are all one once they have
// lost their labels.
func (r *rows) find(words []uint32) (KeyID, bool) {
	if r.is(r.last, words) {
		return r.last, true
	}
	search := r.places.search(hashOf(words))
	for {
		id, more := r.places.next(&search)
		if !more {
			return 0, false
		}
		if r.is(KeyID(id), words) {
			r.last = KeyID(id)
			return r.last, true
		}
	}
}

// is says whether a key has these words, which no key lacks.
func (r *rows) is(id KeyID, words []uint32) bool {
	if int(id) >= len(r.list) {
		return false
	}
	row := &r.list[id]
	return bytes.Equal(bytesOf(r.words[row.from:row.to]), bytesOf(words))
}

// put adds the words of the next id.
func (r *rows) put(id KeyID, partition uint32, words []uint32) {
	from, hash := uint32(len(r.words)), hashOf(words)
	r.words = append(r.words, words...)
	r.list = append(r.list, rowKey{hash: hash, from: from, to: uint32(len(r.words)), partition: partition})
	r.places.put(hash, uint32(id), func(id uint32) uint64 { return r.list[id].hash })
	r.last = id
}

// skip leaves the next id to a key that is not found by its words.
func (r *rows) skip() { r.list = append(r.list, rowKey{}) }

func (r *rows) reset() {
	r.places.reset()
	r.list, r.words, r.last = r.list[:0], r.words[:0], 0
}

// rowBytes is what a row takes with its key, the room that the lists have for more,
// and its places in a table that has just grown, without the texts of its labels.
func rowBytes(words []uint32) int {
	const tag = int(unsafe.Sizeof(""))
	lists := int(unsafe.Sizeof(rowKey{})) + int(unsafe.Sizeof(KeyEntry{})) + 4*len(words)
	return lists*5/4 + 4*int(unsafe.Sizeof(place{})) + tag*(len(words)-wordTags)
}

// spare is what the memory for rows takes while there are none.
func (r *rows) spare() int {
	return cap(r.list)*int(unsafe.Sizeof(rowKey{})) + 4*cap(r.words) + r.places.spare()
}

func hashOf(words []uint32) uint64 { return maphash.Bytes(seed, bytesOf(words)) }

func bytesOf(words []uint32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 4*len(words))
}
