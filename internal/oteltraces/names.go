package oteltraces

import (
	"encoding/binary"
	"math/bits"
)

// nameTable finds the label of an attribute's name. It is asked for every attribute of every
// span, most of which are none of ours: so a name is told apart by its length, its first and
// its last eight bytes, in one slot. Only where they agree is it compared. It never changes.
type nameTable struct {
	names   []string // by label; label 0 stands for every other name
	entries []nameEntry
	slots   [1 << slotBits]label // by hash, the first of the names that share it
}

// nameEntry is what is compared of a name.
type nameEntry struct {
	ends ends
	next label // another name with this hash
}

// slotBits makes room for eight times as many names as there can be.
const slotBits = 11

// ends are the length of a name and its first and last eight bytes, which overlap in a
// shorter one.
type ends struct {
	first, last uint64
	length      int
}

func endsOf(name []byte) (e ends) {
	n := len(name)
	switch {
	case n >= 8:
		return ends{binary.LittleEndian.Uint64(name), binary.LittleEndian.Uint64(name[n-8:]), n}
	case n >= 4:
		return ends{uint64(binary.LittleEndian.Uint32(name)), uint64(binary.LittleEndian.Uint32(name[n-4:])), n}
	case n > 0:
		return ends{uint64(name[0]) | uint64(name[n>>1])<<8, uint64(name[n-1]), n}
	}
	return e
}

func (e ends) slot() uint64 {
	return (e.first + bits.RotateLeft64(e.last, 29) + uint64(e.length)) * 0x9e3779b97f4a7c15 >> (64 - slotBits)
}

// newNameTable makes a table of at most maxLabels names. Those that are empty are not looked
// up, and the first one is.
func newNameTable(names []string) *nameTable {
	t := &nameTable{names: names, entries: make([]nameEntry, len(names))}
	for number := len(names) - 1; number > 0; number-- {
		if names[number] == "" {
			continue
		}
		e := nameEntry{ends: endsOf([]byte(names[number]))}
		slot := &t.slots[e.ends.slot()]
		e.next = *slot
		t.entries[number], *slot = e, label(number)
	}
	return t
}

// find returns the label of a name, labelOther where it is none of ours.
func (t *nameTable) find(name []byte) label {
	e := endsOf(name)
	for at := t.slots[e.slot()]; at != labelOther; at = t.entries[at].next {
		if t.entries[at].ends == e && t.names[at] == string(name) {
			return at
		}
	}
	return labelOther
}
