package aggregate

import (
	"encoding/binary"
	"math/bits"
	"strings"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// mould is a key that lost labels, with gaps where these stood. Whatever has the same bytes
// around the gaps, and in each a label that can stay as it is and was not admitted, becomes
// what that key has become: so most keys of a flood are known by some of their words, and
// neither taken apart nor looked for. That a label was not admitted is known by its
// tail, and holds for the rest of the interval, for its budget was used up before the
// mould was cast. The daemon's 305 ns a span on adversarial became 220.
type mould struct {
	length    int // of the keys that fit, or uncast
	words     int
	gaps      int
	fixed     [mouldWords]fixedWord
	gap       [mouldGaps]gap
	admission Admission
	tags      [maxGlancedTags]int32 // names of the tags that it lost
	lostTags  int
	times     uint64 // keys that fitted, and are not settled
}

// fixedWord is what stands in eight bytes of a key, where the mask is not 0.
type fixedWord struct {
	word, mask uint64
	at         int
}

// gap is where a label stood.
type gap struct {
	from, length int
	free         int    // where what may differ begins: behind the name of a tag
	scope        uint64 // what its tail's hash becomes by, see hashIn
	field        Field
}

const (
	// uncast is the length of a mould that nothing fits, not even a key of no bytes.
	uncast = -1
	// moulds is how many are kept, by the length of the key.
	moulds = 4
	// mouldWords is how many words a key may have around its gaps.
	mouldWords = 16
	mouldGaps  = 6
	// leastGap is how long a label must be for a gap.
	leastGap = 8
	// castOf is of how many keys that fit none a mould is cast: keys of as many bytes that
	// come in turns would else do nothing but break each other's.
	castOf = 8
)

// blockedTail is that of span.Blocked, in no scope.
var blockedTail = span.Tail(span.Blocked)

// Fits says what Admit would say of a key that fits a mould.
func (g *Glance) Fits(raw []byte) (Admission, bool) {
	m := &g.moulds[len(raw)%moulds]
	if m.length != len(raw) || !m.fits(raw, g.registry.values.tails.view()) {
		return Admission{}, false
	}
	m.times++
	return m.admission, true
}

// fits takes it for granted that what was in the key that was cast is in one that is as
// long. It asks in three loops, of which each has few enough values to keep them in
// registers.
func (m *mould) fits(raw []byte, tails []uint64) bool {
	start, differs := unsafe.Pointer(unsafe.SliceData(raw)), uint64(0)
	for i := range m.fixed[:m.words] {
		fixed := &m.fixed[i]
		differs |= (wordAt(start, fixed.at) ^ fixed.word) & fixed.mask
	}
	if differs != 0 {
		return false
	}
	for i := range m.gap[:m.gaps] {
		gap := &m.gap[i]
		tail := span.TailOf(wordAt(start, gap.from+gap.length-8), gap.length)
		if tail == blockedTail || passes(tails, tail^gap.scope) {
			return false
		}
	}
	for i := range m.gap[:m.gaps] {
		if gap := &m.gap[i]; !gap.field.canStay(unsafe.String((*byte)(unsafe.Add(start, gap.from)), gap.length)) {
			return false
		}
	}
	return true
}

// canStay says of a label that is not too long whether it can stay as it is. It is no to
// some that can.
func (f Field) canStay(text string) bool {
	switch f {
	case FieldService:
		return span.IsServiceName(text)
	case FieldOperation:
		return span.IsOperationName(text)
	}
	return span.IsASCII(text)
}

// cast makes a mould of a key that was admitted at a glance, and lost labels.
func (g *Glance) cast(key string, o *span.Outline, a Admission) {
	if g.unfit++; g.unfit%castOf != 0 {
		return
	}
	var m mould
	for f := FieldService; f <= FieldResource; f++ {
		if a.Collapsed.Has(f) {
			m.open(g.origin, f, o.Labels[f], 0)
		}
	}
	for lost := g.lostAt; lost != 0; lost &= lost - 1 {
		tag := o.PeerTags[bits.TrailingZeros16(lost)]
		if name := strings.IndexByte(tag.Of(key), ':'); name >= 0 {
			m.open(g.origin, FieldPeerTag, tag, name+1)
		}
	}
	if m.gaps == 0 || !m.fix(key) {
		return
	}
	m.length, m.admission = len(key), a
	m.lostTags = copy(m.tags[:], g.tags[:g.lostTags])
	broken := &g.moulds[len(key)%moulds]
	g.settleMould(broken)
	*broken = m
}

// open makes a gap where a label stands, but for so many bytes of it.
func (m *mould) open(origin OriginID, f Field, part span.Part, but int) {
	from, to := int(part.From), int(part.To)
	if m.gaps < mouldGaps && to-from >= leastGap {
		m.gap[m.gaps] = gap{from: from, length: to - from, free: from + but, scope: hashIn(scopeOf(origin, f), 0), field: f}
		m.gaps++
	}
}

// fix notes what stands around the gaps. It reports false where that is too much.
func (m *mould) fix(key string) bool {
	for at := 0; at < len(key); at += 8 {
		from := min(at, len(key)-8)
		mask := ^uint64(0)
		for _, gap := range m.gap[:m.gaps] {
			mask &^= bytesBetween(gap.free-from, gap.from+gap.length-from)
		}
		if mask == 0 {
			continue
		}
		if m.words == mouldWords {
			return false
		}
		m.fixed[m.words] = fixedWord{wordAt(unsafe.Pointer(unsafe.StringData(key)), from), mask, from}
		m.words++
	}
	return true
}

// bytesBetween is a mask of those bytes of a word.
func bytesBetween(from, to int) uint64 {
	return bytesBelow(to) &^ bytesBelow(from)
}

func bytesBelow(n int) uint64 { return uint64(1)<<(8*min(max(n, 0), 8)) - 1 }

func wordAt(start unsafe.Pointer, at int) uint64 {
	return binary.LittleEndian.Uint64((*[8]byte)(unsafe.Add(start, at))[:])
}

// settleMould counts what the keys that fitted have lost.
func (g *Glance) settleMould(m *mould) {
	if m.times == 0 {
		return
	}
	for f := range FieldPeerTag {
		if m.admission.Collapsed.Has(f) {
			g.lostSum[f] += m.times
			g.lostAny = true
		}
	}
	for _, name := range m.tags[:m.lostTags] {
		g.loseName(name, m.times)
	}
	m.times = 0
}
