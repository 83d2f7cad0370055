package aggregate

import "slices"

// rows are the keys of one interval as words, found by their hash. Their words lie
// one behind the other in one slice without pointers.
type rows struct {
	places places
	list   []rowKey // by KeyID
	words  []uint32

	shared int // rows out of MaxAggregates
	kept   int // rows out of the reserve
}

type rowKey struct {
	hash      uint64
	from, to  uint32 // in words
	partition uint32
}

func newRows() rows { return rows{places: newPlaces()} }

func (r *rows) find(hash uint64, words []uint32) (KeyID, bool) {
	search := r.places.search(hash)
	for {
		id, more := r.places.next(&search)
		if !more {
			return 0, false
		}
		if row := &r.list[id]; slices.Equal(r.words[row.from:row.to], words) {
			return KeyID(id), true
		}
	}
}

// put adds the words of the next id.
func (r *rows) put(id KeyID, hash uint64, partition uint32, words []uint32) {
	from := uint32(len(r.words))
	r.words = append(r.words, words...)
	r.list = append(r.list, rowKey{hash: hash, from: from, to: uint32(len(r.words)), partition: partition})
	r.places.put(hash, uint32(id), func(id uint32) uint64 { return r.list[id].hash })
}

// skip leaves the next id to a key that is not found by its words.
func (r *rows) skip() { r.list = append(r.list, rowKey{}) }

func (r *rows) reset() {
	r.places.reset()
	r.list, r.words = r.list[:0], r.words[:0]
	r.shared, r.kept = 0, 0
}
