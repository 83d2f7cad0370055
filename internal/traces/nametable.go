package traces

import (
	"encoding/binary"
	"math/bits"

	"github.com/spanstatsd/spanstatsd/internal/msgpack"
)

// nameTable finds the number of a name. It is asked for every tag of every span, and which
// of them are in the table is nothing that a processor can foretell: so a name is compared
// by its length and its two ends, in one slot, without a branch on what it is. It never
// changes.
type nameTable struct {
	names []string // by number; number 0 stands for every other name
	ends  [256]nameEnds
	slots [1 << nameSlotBits]uint8 // by hash, the first of the names that share it
}

// nameEnds are a name's length and its first and last eight bytes, which are the same ones
// if it has no more.
type nameEnds struct {
	n           int
	first, last uint64
	next        uint8 // another name with this hash
	isShared    bool  // by other names, or the name has more than its ends
}

// nameSlotBits makes room for sixteen times as many names as there can be.
const nameSlotBits = 12

// newNameTable makes a table of at most 256 names. The first one is not looked up.
func newNameTable(names []string) *nameTable {
	t := &nameTable{names: names}
	t.ends[0].n = -1
	for number := 1; number < len(names); number++ {
		name := names[number]
		if name == "" {
			continue
		}
		first, last := endsOf([]byte(name))
		slot := &t.slots[hash(first, last)]
		t.ends[number] = nameEnds{len(name), first, last, *slot, *slot != 0 || len(name) > 16}
		*slot = uint8(number)
	}
	return t
}

// find returns a name's number, 0 where it is not in the table.
func (t *nameTable) find(body []byte, name msgpack.Text) uint8 {
	at, n := int(name.At), int(name.Len)
	behind := at + (n-8)&^((n-8)>>63) // max(0, n-8), which would be a branch
	if at < 0 || behind < at || behind > len(body)-8 {
		return t.findWhole(name.Of(body))
	}
	own := uint64(1)<<(8*uint(n)) - 1 // from eight bytes on, all
	first, last := binary.LittleEndian.Uint64(body[at:at+8])&own, binary.LittleEndian.Uint64(body[behind:behind+8])&own
	number := uint(t.slots[hash(first, last)])
	e := &t.ends[number]
	if e.isShared {
		return t.findWhole(name.Of(body))
	}
	if uint64(e.n^n)|(e.first^first)|(e.last^last) != 0 {
		number = 0
	}
	return uint8(number)
}

// findWhole is find for names that share a hash, are longer than their ends, or lie near
// the end of the body.
func (t *nameTable) findWhole(name []byte) uint8 {
	number := t.slots[hash(endsOf(name))]
	for number != 0 && t.names[number] != string(name) {
		number = t.ends[number].next
	}
	return number
}

// endsOf are the first and the last eight bytes of a name, or all of it, twice.
func endsOf(name []byte) (first, last uint64) {
	var room [16]byte
	copy(room[:8], name)
	copy(room[8:], name[max(0, len(name)-8):])
	return binary.LittleEndian.Uint64(room[:8]), binary.LittleEndian.Uint64(room[8:])
}

// hash mixes the ends of a name.
func hash(first, last uint64) uint64 {
	return (first + bits.RotateLeft64(last, 23)) * 0x9e3779b97f4a7c15 >> (64 - nameSlotBits)
}
