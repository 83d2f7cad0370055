package datadog

import (
	"bytes"
	"hash/maphash"

	"github.com/spanstatsd/spanstatsd/internal/msgpack"
	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

// strings are those that a body numbers, and by string the label of the tag with that name.
type strings struct {
	texts  []spantable.Text
	labels []spantable.Label
	// slots find the number of a string that a v1 body has brought already: a string that stands
	// in it twice keeps its first number, and gets no second one. It is a flat hash table of
	// numbers, each one more than its string's, so that 0 is an empty slot.
	slots []uint32
	seed  maphash.Seed
	// misplaced says that a v0.5 body has an empty string that is not the first.
	misplaced bool
}

// firstSlots is the size of a table to begin with.
const firstSlots = 256

func (s *strings) reset() { s.texts, s.labels, s.misplaced = s.texts[:0], s.labels[:0], false }

// begin makes the strings findable by their bytes.
func (s *strings) begin() {
	if s.slots == nil {
		s.seed, s.slots = maphash.MakeSeed(), make([]uint32, firstSlots)
	}
	clear(s.slots)
}

// slot is where a string is, or where it belongs.
func (s *strings) slot(body, text []byte) *uint32 {
	mask := uint64(len(s.slots) - 1)
	for at := maphash.Bytes(s.seed, text) & mask; ; at = (at + 1) & mask {
		slot := &s.slots[at]
		if *slot == 0 || bytes.Equal(bytesOf(body, s.texts[*slot-1]), text) {
			return slot
		}
	}
}

// grow makes the table twice as large.
func (s *strings) grow(body []byte) {
	s.slots = make([]uint32, 2*len(s.slots))
	for i := range s.texts {
		*s.slot(body, bytesOf(body, s.texts[i])) = uint32(i + 1)
	}
}

func bytesOf(body []byte, t spantable.Text) []byte { return msgpack.Text(t).Of(body) }
