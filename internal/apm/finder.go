package apm

import (
	"encoding/binary"
	"math/bits"
)

// finder finds the number of a name. It is asked for every tag of every span, and
// most names are nobody's, in an order that nobody can foretell: so it looks at no
// more of a name than its two ends, in one place, without a branch on what it finds.
// There is one place to look at because no two names share one, which is found out
// by trying.
type finder struct {
	slots  []label // by hash
	factor uint64  // of the hash
	shift  uint8
	ends   [maxLabels]ends
	twins  [maxLabels]label // of a name, another one with the same ends
	whole  [maxLabels]string
}

// ends are a name's length and its first and last eight bytes, which are the same ones
// if it has no more. Up to sixteen bytes they are all of it.
type ends struct{ n, first, last uint64 }

// endsOf are the ends of a name that lies anywhere.
func endsOf(name string) ends {
	var room [16]byte
	n := len(name)
	if n > 8 {
		copy(room[:8], name)
		copy(room[8:], name[n-8:])
	} else {
		copy(room[:8], name)
		copy(room[8:], name)
	}
	return ends{uint64(n), binary.LittleEndian.Uint64(room[:]), binary.LittleEndian.Uint64(room[8:])}
}

// spread gives each name a slot of its own. It reports false where none of many
// tables has them.
func (f *finder) spread(names []string) bool {
	for at, name := range names {
		f.ends[at], f.whole[at] = endsOf(name), name
	}
	factor := uint64(0x9e3779b97f4a7c15)
	for size := uint8(10); size <= 16; size++ {
		for range 64 {
			factor = factor*0xd1342543de82ef95 + 2 // odd, as it was
			f.factor, f.shift = factor, 64-size
			if f.place(names, 1<<size) {
				return true
			}
		}
	}
	return false
}

// place fills a table of that size, if every name finds its slot free, or taken by
// one with the same ends.
func (f *finder) place(names []string, size int) bool {
	f.slots, f.twins = make([]label, size), [maxLabels]label{}
	for i := range names[1:] {
		at := label(i + 1)
		slot := &f.slots[f.hash(f.ends[at].first, f.ends[at].last)]
		if *slot != labelOther && f.ends[*slot] != f.ends[at] {
			return false
		}
		f.twins[at], *slot = *slot, at
	}
	return true
}

func (f *finder) hash(first, last uint64) uint64 {
	return (first + bits.RotateLeft64(last, 23)) * f.factor >> (f.shift & 63)
}

// find returns the number of a tag's name, labelOther where no rule asks for it.
func (f *finder) find(name []byte) label {
	e := endsOf(view(name))
	at := f.slots[f.hash(e.first, e.last)]
	for at != labelOther && f.whole[at] != view(name) {
		at = f.twins[at]
	}
	return at
}
