package traces

import (
	"bytes"
	"hash/maphash"
)

// stringTable finds the number of a string that a v1 body has brought already: a
// string that stands in it twice keeps its first number, and gets no second one.
// It is flat and emptied by counting its generation on.
type stringTable struct {
	seed       maphash.Seed
	generation uint32
	used       int
	slots      []stringSlot
}

type stringSlot struct {
	generation uint32
	number     uint32
}

func (t *stringTable) reset() {
	if t.slots == nil {
		t.seed = maphash.MakeSeed()
		t.slots = make([]stringSlot, 256)
	}
	t.used = 0
	if t.generation++; t.generation == 0 {
		clear(t.slots)
		t.generation = 1
	}
}

// slot is where the string is, or where it belongs.
func (p *payload) slot(s []byte) *stringSlot {
	t := &p.table
	mask := uint64(len(t.slots) - 1)
	for at := maphash.Bytes(t.seed, s) & mask; ; at = (at + 1) & mask {
		slot := &t.slots[at]
		if slot.generation != t.generation || bytes.Equal(p.strings[slot.number].of(p.b), s) {
			return slot
		}
	}
}

// numberOf is the number of a string, a new one where the body has not had it. It
// reports whether it is new.
func (p *payload) numberOf(s text) (int, bool) {
	t := &p.table
	slot := p.slot(s.of(p.b))
	if slot.generation == t.generation {
		return int(slot.number), false
	}
	if 2*(t.used+1) > len(t.slots) {
		t.slots = make([]stringSlot, 2*len(t.slots))
		for i := range p.strings {
			*p.slot(p.strings[i].of(p.b)) = stringSlot{t.generation, uint32(i)}
		}
		slot = p.slot(s.of(p.b))
	}
	t.used++
	*slot = stringSlot{t.generation, uint32(len(p.strings))}
	p.addString(s, p.labels.find(s.of(p.b)))
	return len(p.strings) - 1, true
}

// addString gives a string the next number.
func (p *payload) addString(s text, l label) {
	if len(p.strings) >= p.most.strings {
		p.fail()
		return
	}
	p.strings, p.numbers = append(p.strings, s), append(p.numbers, l)
}

// streamed reads a string, or the number of one that the body has had.
func (p *payload) streamed() int {
	if lead := p.lead(); lead&0xe0 == 0xa0 || lead >= 0xd9 && lead <= 0xdb {
		if s := p.str(); !p.bad {
			n, _ := p.numberOf(s)
			return n
		}
		return 0
	}
	return p.numbered()
}

func (p *payload) streamedText() text {
	if n := p.streamed(); !p.bad {
		return p.strings[n]
	}
	return text{}
}
