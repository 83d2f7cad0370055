package datadog

import (
	"bytes"
	"hash/maphash"

	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
	"github.com/spanstatsd/spanstatsd/internal/wire/msgpack"
)

// stringTable holds the strings that a payload refers to by index: the dictionary of a v0.5 payload,
// or the strings of a v1 payload so far.
type stringTable struct {
	texts  []spantable.Text
	labels []spantable.Label // label of the tag with that name

	// slots is a hash table with open addressing that finds a string's index in a v1 payload. A slot
	// contains the index plus one, or 0 if it is free. A string that occurs twice keeps its first index.
	slots []uint32
	seed  maphash.Seed

	// hasMisplacedEmpty is set if the empty string of a v0.5 dictionary is not its first string.
	hasMisplacedEmpty bool
}

// initialSlots is the initial size of the hash table.
const initialSlots = 256

func (s *stringTable) reset() {
	s.texts = s.texts[:0]
	s.labels = s.labels[:0]
	s.hasMisplacedEmpty = false
}

// resetSlots empties the hash table, which only the v1 format uses.
func (s *stringTable) resetSlots() {
	if s.slots == nil {
		s.seed, s.slots = maphash.MakeSeed(), make([]uint32, initialSlots)
	}
	clear(s.slots)
}

// findSlot returns the slot that contains text, or the free slot where it must be inserted.
func (s *stringTable) findSlot(body, text []byte) *uint32 {
	mask := uint64(len(s.slots) - 1)
	for i := maphash.Bytes(s.seed, text) & mask; ; i = (i + 1) & mask {
		slot := &s.slots[i]
		isFree := *slot == 0
		if isFree || bytes.Equal(bytesOf(body, s.texts[*slot-1]), text) {
			return slot
		}
	}
}

// growSlots doubles the hash table.
func (s *stringTable) growSlots(body []byte) {
	s.slots = make([]uint32, 2*len(s.slots))
	for i := range s.texts {
		*s.findSlot(body, bytesOf(body, s.texts[i])) = uint32(i + 1)
	}
}

func bytesOf(body []byte, t spantable.Text) []byte { return msgpack.Text(t).Bytes(body) }

// addString appends a string to the string table of the payload. label is the label for tags with this name,
// or spantable.Other if they are not stored. If the table is full, addString stops the decoder with
// ErrTooMuch.
func (d *Decoder) addString(t spantable.Text, label spantable.Label) {
	s := &d.strings
	isFull := len(s.texts) >= d.table.Limits.Strings
	if isFull {
		d.table.Fail(spantable.ErrTooMuch)
		d.Fail()
		return
	}
	s.texts = append(s.texts, t)
	s.labels = append(s.labels, label)
}

// internString returns the index of a string in the string table. It adds the string if it is new.
func (d *Decoder) internString(t spantable.Text) (index int, isNew bool) {
	s := &d.strings
	text := bytesOf(d.body, t)
	maxStrings := len(s.slots) / 2
	if len(s.texts) >= maxStrings {
		s.growSlots(d.body)
	}
	slot := s.findSlot(d.body, text) // contains the index plus one
	isKnown := *slot != 0
	if isKnown {
		return int(*slot - 1), false
	}
	index = len(s.texts)
	d.addString(t, d.names.Find(text))
	if !d.Failed() {
		*slot = uint32(index + 1)
	}
	return index, true
}

// readStringIndex reads an index into the string table of the payload. If a v1 payload contains a
// string instead, readStringIndex adds it to the table, unless it is there already, and returns its
// index. If the payload is invalid, it stops the decoder and returns 0.
func (d *Decoder) readStringIndex() (index int) {
	isString := d.format == FormatV1 && msgpack.IsStr(d.Peek())
	if isString {
		return d.readNewString()
	}
	n := d.readUint64()
	if n >= uint64(len(d.strings.texts)) {
		d.Fail()
		return 0
	}
	return int(n)
}

// readNewString reads a string and returns its index in the string table. It adds the string to the table,
// unless it is there already. It returns 0 if the payload is invalid.
func (d *Decoder) readNewString() (index int) {
	text := d.Str()
	if d.Failed() {
		return 0
	}
	index, _ = d.internString(spantable.Text(text))
	return index
}
