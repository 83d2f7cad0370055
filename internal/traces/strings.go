package traces

import (
	"bytes"
	"hash/maphash"

	"github.com/spanstatsd/spanstatsd/internal/msgpack"
)

// stringTable finds the number of a string that a v1 body has brought already: a
// string that stands in it twice keeps its first number, and gets no second one. It is a
// flat hash table of numbers, each one more than its string's, so that 0 is an empty slot.
type stringTable struct {
	seed  maphash.Seed
	slots []uint32
}

// firstStrings is the size of a table to begin with.
const firstStrings = 256

func (t *stringTable) reset() {
	if t.slots == nil {
		t.seed = maphash.MakeSeed()
		t.slots = make([]uint32, firstStrings)
	}
	clear(t.slots)
}

// slot is where the string is, or where it belongs.
func (p *payload) slot(s []byte) *uint32 {
	t := &p.table
	mask := uint64(len(t.slots) - 1)
	for at := maphash.Bytes(t.seed, s) & mask; ; at = (at + 1) & mask {
		slot := &t.slots[at]
		if *slot == 0 || bytes.Equal(p.strings[*slot-1].Of(p.body), s) {
			return slot
		}
	}
}

// numberOf is the number of a string, a new one where the body has not had it. It
// reports whether it is new.
func (p *payload) numberOf(s msgpack.Text) (number int, isNew bool) {
	t := &p.table
	slot := p.slot(s.Of(p.body))
	if *slot != 0 {
		return int(*slot - 1), false
	}
	number = len(p.strings)
	if 2*(number+1) > len(t.slots) {
		t.slots = make([]uint32, 2*len(t.slots))
		for i := range p.strings {
			*p.slot(p.strings[i].Of(p.body)) = uint32(i + 1)
		}
		slot = p.slot(s.Of(p.body))
	}
	if p.addString(s, p.labels.find(s.Of(p.body))) {
		*slot = uint32(number + 1)
	}
	return number, true
}

// addString gives a string the next number, if there may be one more.
func (p *payload) addString(s msgpack.Text, l label) bool {
	if len(p.strings) >= p.limits.strings {
		p.Fail()
		return false
	}
	p.strings, p.numbers = append(p.strings, s), append(p.numbers, l)
	return true
}

// streamed reads a string, or the number of one that the body has had.
func (p *payload) streamed() int {
	if !msgpack.IsStr(p.Lead()) {
		return p.index()
	}
	s := p.Str()
	if p.Failed() {
		return 0
	}
	n, _ := p.numberOf(s)
	return n
}

// streamedLabel reads such a string as the name of a tag.
func (p *payload) streamedLabel() label {
	if n := p.streamed(); !p.Failed() {
		return p.numbers[n]
	}
	return labelOther
}

func (p *payload) streamedText() msgpack.Text {
	if n := p.streamed(); !p.Failed() {
		return p.strings[n]
	}
	return msgpack.Text{}
}
