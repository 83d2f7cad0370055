package translate

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"

	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

// memo finds an earlier span of a request that is like another one but for its ids, times and
// error, so that the names and tags of a second one cost a hash and a comparison. It is a
// direct-mapped table: what is newer takes the slot of what is older.
type memo struct {
	seed    maphash.Seed
	slots   [memoSlots]memoSlot
	sources []byte // of the request's spans that are remembered: all that they are made of
	request uint64 // its number
}

type memoSlot struct {
	request    uint64 // of which the rest is
	begin, end uint32 // of the source
	number     uint32 // of the span in the second table
}

// The bounds of what is remembered.
const (
	memoSlots  = 1 << 10
	maxSources = 256 << 10
)

// memoHead is what a source takes for a span, and for each of its tags, beside their texts.
const memoHead = 16

// memoBytes is what a memo takes.
const memoBytes = memoSlots*24 + 2*maxSources

// begin forgets the last request.
func (m *memo) begin() {
	if m.request == 0 {
		m.seed = maphash.MakeSeed()
	}
	m.request++
	m.sources = m.sources[:0]
}

// find is the number of an earlier span of the second table that was made of one like this. If
// there is none, this one is remembered with the number that it is about to have.
func (m *memo) find(
	r *otlp.Request, s *spantable.Span, place *otlp.Place, number int,
) (earlier uint32, isKnown bool) {
	tags := r.TagsOf(s)
	size := uint64(s.Name.Len) + uint64(place.State.Len) + memoHead*uint64(1+len(tags))
	for i := range tags {
		if tags[i].IsWritten() {
			size += uint64(tags[i].Text().Len)
		}
	}
	begin := len(m.sources)
	if uint64(begin)+size > maxSources {
		return 0, false
	}
	facts := uint64(s.Kind) | uint64(s.Name.Len)<<8 | uint64(place.State.Len)<<36
	source := binary.LittleEndian.AppendUint32(m.sources, place.Scope) // which has one resource
	source = binary.LittleEndian.AppendUint64(source, facts)
	source = append(append(source, r.Bytes(s.Name)...), r.Bytes(place.State)...)
	for i := range tags {
		t := &tags[i]
		head := uint64(t.Label) | uint64(t.Value)<<8
		if t.IsWritten() {
			source = binary.LittleEndian.AppendUint64(source, head|uint64(t.Text().Len)<<16)
			source = append(source, r.Bytes(t.Text())...)
		} else {
			source = binary.LittleEndian.AppendUint64(source, head)
			source = binary.LittleEndian.AppendUint64(source, t.Bits)
		}
	}
	m.sources = source
	slot := &m.slots[maphash.Bytes(m.seed, source[begin:])%memoSlots]
	if slot.request == m.request && bytes.Equal(source[slot.begin:slot.end], source[begin:]) {
		m.sources = source[:begin]
		return slot.number, true
	}
	*slot = memoSlot{m.request, uint32(begin), uint32(len(source)), uint32(number)}
	return 0, false
}
