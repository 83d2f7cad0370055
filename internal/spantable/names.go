package spantable

import (
	"encoding/binary"
	"math/bits"
)

// Names finds the label of a tag's name. It is asked for every tag of every span, and which of
// them are wanted is nothing that a processor can foretell: so a name is compared by its length,
// its first and its last eight bytes, in one slot, without a branch on what it is.
type Names struct {
	names   []string // by label
	entries [MaxLabels]entry
	slots   [1 << slotBits]Label // by hash, the last of the names that share it
}

// entry is what is compared of a name.
type entry struct {
	ends     Ends
	next     Label // another name with this hash
	isShared bool  // its hash by other names, or its ends by others with another middle
}

// slotBits makes room for sixteen times as many names as there can be.
const slotBits = 12

const endLen = 8

// Ends are the length of a name and its first and last eight bytes. Of a shorter name both are
// all of it, with zeros behind.
type Ends struct {
	first, last uint64
	length      int
}

// EndsIn are the ends of a name of n bytes that begins at a place of a body, which has at least
// eight bytes before the end of the name and eight behind its beginning.
func EndsIn(body []byte, at, n int) Ends {
	foreign := 64 - 8*min(n, endLen) // bits that are not the name's
	first := binary.LittleEndian.Uint64(body[at:]) << foreign >> foreign
	last := binary.LittleEndian.Uint64(body[at+n-endLen:]) >> foreign
	return Ends{first, last, n}
}

// Len is the length of the name.
func (e *Ends) Len() int { return e.length }

// EndsOf are the ends of a name that lies anywhere.
func EndsOf[T string | []byte](name T) Ends {
	n := len(name)
	if n >= endLen {
		var room [2 * endLen]byte
		copy(room[:endLen], name)
		copy(room[endLen:], name[n-endLen:])
		return Ends{binary.LittleEndian.Uint64(room[:]), binary.LittleEndian.Uint64(room[endLen:]), n}
	}
	all := uint64(0)
	for i := range n {
		all |= uint64(name[i]) << (8 * i)
	}
	return Ends{all, all, n}
}

func (e Ends) slot() uint64 {
	mixed := e.first + bits.RotateLeft64(e.last, 29) + uint64(e.length)
	return mixed * 0x9e3779b97f4a7c15 >> (64 - slotBits)
}

// NewNames makes a table of at most MaxLabels names, by their labels. The first one and those
// that are empty are found by no name.
func NewNames(names []string) *Names {
	t := &Names{names: names}
	for l := 1; l < len(names); l++ {
		if name := names[l]; name != "" {
			e := entry{ends: EndsOf(name)}
			slot := &t.slots[e.ends.slot()]
			e.next, e.isShared = *slot, *slot != Other || len(name) > 2*endLen
			t.entries[l], *slot = e, Label(l)
		}
	}
	return t
}

// Name is the name of a label.
func (t *Names) Name(l Label) string { return t.names[l] }

// Len is how many labels there are, with Other.
func (t *Names) Len() int { return len(t.names) }

// Find returns the label of a name.
func (t *Names) Find(name []byte) Label {
	l := t.slots[EndsOf(name).slot()]
	for l != Other && t.names[l] != string(name) {
		l = t.entries[l].next
	}
	return l
}

// Among returns the label of a name by its ends, unless that takes more to be sure: then Find
// knows it.
func (t *Names) Among(e Ends) (l Label, isSure bool) {
	found := uint(t.slots[e.slot()])
	known := &t.entries[found]
	if (known.ends.first^e.first)|(known.ends.last^e.last)|uint64(known.ends.length^e.length) != 0 {
		found = 0
	}
	return Label(found), !known.isShared
}
