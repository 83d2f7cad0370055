package traces

import (
	"encoding/binary"
	"math/bits"
	"strings"
)

// nameTable finds the number of a name. It is asked for every tag of every span, and which
// of them are in the table is nothing that a processor can foretell: so a name is compared
// by its length and its head, in one slot, without a branch on what it is. It never changes.
type nameTable struct {
	names   []string // by number; number 0 stands for every other name
	entries [256]nameEntry
	slots   [1 << nameSlotBits]uint8 // by hash, the first of the names that share it
}

// nameEntry is what is compared of a name.
type nameEntry struct {
	head     head
	n        int
	next     uint8 // another name with this hash
	isShared bool  // its hash by other names, or its head by longer ones
}

// nameSlotBits makes room for sixteen times as many names as there can be.
const nameSlotBits = 12

// head is the first sixteen bytes of a name, with zeros behind a shorter one.
type head struct{ first, second uint64 }

const headLen = 16

// headOf is the head of a name that lies anywhere.
func headOf[T string | []byte](name T) head {
	var room [headLen]byte
	copy(room[:], name)
	return head{binary.LittleEndian.Uint64(room[:8]), binary.LittleEndian.Uint64(room[8:])}
}

// ownBits are, by the length of a name, those bits of sixteen bytes that are its own.
var ownBits = func() (all [256]head) {
	for n := range all {
		all[n] = headOf(strings.Repeat("\xff", n))
	}
	return all
}()

// headAt is the head of a name of n bytes that begins the window.
func headAt(w *[headLen]byte, n int) head {
	own := &ownBits[uint8(n)]
	return head{binary.LittleEndian.Uint64(w[:8]) & own.first, binary.LittleEndian.Uint64(w[8:]) & own.second}
}

// newNameTable makes a table of at most 256 names. The first one is not looked up.
func newNameTable(names []string) *nameTable {
	t := &nameTable{names: names}
	for number := 1; number < len(names); number++ {
		if name := names[number]; name != "" {
			e := nameEntry{head: headOf(name), n: len(name)}
			slot := &t.slots[e.head.hash(e.n)]
			e.next, e.isShared = *slot, *slot != 0 || len(name) > headLen
			t.entries[number], *slot = e, uint8(number)
		}
	}
	return t
}

// find returns the number of a name.
func (t *nameTable) find(name []byte) uint8 {
	number := t.slots[headOf(name).hash(len(name))]
	for number != 0 && t.names[number] != string(name) {
		number = t.entries[number].next
	}
	return number
}

// among returns the number of a name by its head and its length, unless that takes more to
// be sure.
func (t *nameTable) among(h head, n int) (number uint8, isSure bool) {
	found := uint(t.slots[h.hash(n)])
	e := &t.entries[found]
	if (e.head.first^h.first)|(e.head.second^h.second)|uint64(e.n^n) != 0 {
		found = 0
	}
	return uint8(found), !e.isShared
}

// hash mixes a head and a length.
func (h head) hash(n int) uint64 {
	return (h.first + bits.RotateLeft64(h.second, 23) + uint64(n)) * 0x9e3779b97f4a7c15 >> (64 - nameSlotBits)
}
