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

// Label is the number of a tag's name among those that some rule asks for.
type Label uint8

// Other is the label of every name that no rule asks for.
const Other Label = 0

// MaxLabels bounds the labels, and with them what an operator or an agent may ask for.
const MaxLabels = 256

// Wanted is 1 for a label and 0 for Other, without a branch on which it is.
func (l Label) Wanted() int {
	if l != Other {
		return 1
	}
	return 0
}

// LabelSet is a set of labels.
type LabelSet [MaxLabels / 64]uint64

// LabelsOf is the set of some labels.
func LabelsOf(all ...Label) (s LabelSet) {
	for _, l := range all {
		s.Add(l)
	}
	return s
}

// Add adds a label.
func (s *LabelSet) Add(l Label) { s[l>>6] |= 1 << (l & 63) }

// Remove removes a label.
func (s *LabelSet) Remove(l Label) { s[l>>6] &^= 1 << (l & 63) }

// Has says whether a label is in the set.
func (s *LabelSet) Has(l Label) bool { return s[l>>6]&(1<<(l&63)) != 0 }

// Kind is a span's kind. The first ones have OTLP's numbers.
type Kind uint8

const (
	KindUnknown Kind = iota // none was said, in the formats that can tell
	KindInternal
	KindServer
	KindClient
	KindProducer
	KindConsumer
	KindOther       // one that the agent does not know, to which it is internal
	KindUnspecified // of OTLP, where none was said
	Kinds           // how many there are
)

var kindNames = [Kinds]string{
	"unknown", "internal", "server", "client", "producer", "consumer", "other", "unspecified",
}

// String is the kind's name.
func (k Kind) String() string { return kindNames[k] }

// KindSet is a set of kinds.
type KindSet uint8

// KindsOf is the set of some kinds.
func KindsOf(kinds ...Kind) (set KindSet) {
	for _, k := range kinds {
		set |= 1 << k
	}
	return set
}

// Has says whether a kind is in the set.
func (s KindSet) Has(k Kind) bool { return s&(1<<k) != 0 }
