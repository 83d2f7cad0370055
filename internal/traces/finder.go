package traces

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
	slots  [1 << slotBits]label // by hash
	factor uint64               // of the hash
	ends   [maxLabels]ends
	twins  [maxLabels]label // of a name, another one with the same ends
	whole  [maxLabels]string
}

// slotBits makes 16 KB of slots: of as many names as there can be, none share one with
// every eighth factor.
const slotBits = 14

// ends are a name's length and its first and last eight bytes, which are the same ones
// if it has no more. Up to sixteen bytes they are all of it.
type ends struct{ n, first, last uint64 }

// endsOf are the ends of a name that lies anywhere.
func endsOf(name string) ends {
	var room [16]byte
	n := len(name)
	copy(room[:8], name)
	copy(room[8:], name[max(0, n-8):])
	return ends{uint64(n), binary.LittleEndian.Uint64(room[:]), binary.LittleEndian.Uint64(room[8:])}
}

// spread gives each name a slot of its own. It reports false where no factor does.
func (f *finder) spread(names []string) bool {
	for at, name := range names {
		f.ends[at], f.whole[at] = endsOf(name), name
	}
	f.factor = 0x9e3779b97f4a7c15
	for range 1 << 12 {
		if f.place(names) {
			return true
		}
		f.factor = f.factor*0xd1342543de82ef95 + 2 // odd, as it was
	}
	return false
}

// place fills the table, if every name finds its slot free, or taken by one with the
// same ends.
func (f *finder) place(names []string) bool {
	clear(f.slots[:])
	clear(f.twins[:])
	for i := range names[1:] {
		at := label(i + 1)
		slot := f.slot(f.ends[at])
		if *slot != labelOther && f.ends[*slot] != f.ends[at] {
			return false
		}
		f.twins[at], *slot = *slot, at
	}
	return true
}

func (f *finder) slot(e ends) *label {
	return &f.slots[(e.first+bits.RotateLeft64(e.last, 23))*f.factor>>(64-slotBits)]
}

// exactly is the number of a name of more than sixteen bytes, by one that has the same
// ends.
func (f *finder) exactly(at label, name []byte) label {
	for at != labelOther && f.whole[at] != view(name) {
		at = f.twins[at]
	}
	return at
}

// find returns the number of a tag's name, labelOther where no rule asks for it.
func (f *finder) find(name []byte) label {
	return f.exactly(*f.slot(endsOf(view(name))), name)
}
