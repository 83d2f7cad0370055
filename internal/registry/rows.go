package registry

import (
	"bytes"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// rows are the keys of one interval as words, found by their hash. Their words lie
// one behind the other in one slice without pointers. Like its places, it may be
// searched without the lock under which it is written.
type rows struct {
	places     places
	list       []rowKey // by KeyID
	words      []uint32
	shown      shown[rowKey]
	shownWords shown[uint32]
}

type rowKey struct {
	hash      uint64
	from, to  uint32 // in words
	partition uint32
}

func (r *rows) init() {
	r.places.init()
	r.list, r.words = nil, nil
	r.shown.update(r.list)
	r.shownWords.update(r.words)
}

// find returns the id of the key with these words, and its partition's hash.
func (r *rows) find(words []uint32) (id KeyID, partition uint32, ok bool) {
	slots, want, at := r.places.begin(hashWords(words))
	for {
		number, next, more := found(slots, want, at)
		if !more {
			return 0, 0, false
		}
		at = next
		row := &r.shown.list()[number]
		if bytes.Equal(bytesOf(r.shownWords.list()[row.from:row.to]), bytesOf(words)) {
			return KeyID(number), row.partition, true
		}
	}
}

// put adds the words of the next id.
func (r *rows) put(id KeyID, partition uint32, words []uint32) {
	from, hash := uint32(len(r.words)), hashWords(words)
	r.words = append(r.words, words...)
	r.list = append(r.list, rowKey{hash: hash, from: from, to: uint32(len(r.words)), partition: partition})
	r.shownWords.update(r.words)
	r.shown.update(r.list)
	r.places.put(hash, uint32(id), func(id uint32) uint64 { return r.list[id].hash })
}

// skip leaves the next id to a key that is not found by its words.
func (r *rows) skip() {
	r.list = append(r.list, rowKey{})
	r.shown.update(r.list)
}

func (r *rows) reset() {
	r.places.reset()
	r.list, r.words = r.list[:0], r.words[:0]
}

// rowBytes is what a row takes with its key, the room that the lists have for more,
// and its places in a table that has just grown, without the texts of its labels.
func rowBytes(words []uint32) int {
	const tag = int(unsafe.Sizeof(""))
	lists := int(unsafe.Sizeof(rowKey{})) + int(unsafe.Sizeof(KeyEntry{})) + 4*len(words)
	return lists*5/4 + 4*placeBytes + tag*(len(words)-wordTags)
}

// spare is what the memory for rows takes while there are none.
func (r *rows) spare() int {
	return cap(r.list)*int(unsafe.Sizeof(rowKey{})) + 4*cap(r.words) + r.places.spare()
}

func hashWords(words []uint32) uint64 {
	hash, _ := span.Look(unsafe.String((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 4*len(words)))
	return hash
}

func bytesOf(words []uint32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 4*len(words))
}
