package apm

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// memo remembers the keys that were made last, by everything that they are made of.
// A span whose key was made before costs the copying, hashing and comparing of its
// labels as they lie in the body: nothing of it is checked, mended, quantised or
// written again. That was a quarter of counting.
//
// It is a flat table in which a newer key takes the place of an older one. It
// outlives the body, and holds no part of it.
type memo struct {
	wishes *Wishes // that its keys were made for
	seed   maphash.Seed
	slots  []memoSlot
	next   [maxSource + sourceSlack]byte // what the key at hand is made of
	n      int
}

// memoSlot is one key and what it is made of, in one piece of memory.
type memoSlot struct {
	hash uint64
	text []byte
	n    int // of text, what the key is made of
}

const (
	// memoSlots, maxSource and maxMemoKey bound what a memo holds, to 1.8 MB if all of
	// its keys are as long as can be; those of a web application take a sixth.
	memoSlots   = 1 << 11
	maxSource   = 384
	maxMemoKey  = 512
	sourceSlack = 64
)

// reset forgets all keys where they were made for other wishes.
func (m *memo) reset(wishes *Wishes) {
	if m.wishes == wishes {
		return
	}
	if m.slots == nil {
		m.seed = maphash.MakeSeed()
	}
	m.wishes, m.slots = wishes, make([]memoSlot, memoSlots)
}

// source collects what the selected span's key is made of. It reports false where
// that is too much to be remembered, or can't be.
func (c *Counter) source(rec *record) bool {
	m := &c.memo
	length := rec.service.n | rec.name.n | rec.resource.n | rec.kindOfWork.n
	if length >= maxSource {
		return false
	}
	facts := uint64(rec.kind)
	if rec.parent == 0 {
		facts |= 1 << 4
	}
	if c.synthetic {
		facts |= 1 << 5
	}
	facts |= uint64(rec.service.n)<<8 | uint64(rec.name.n)<<20 | uint64(rec.resource.n)<<32 | uint64(rec.kindOfWork.n)<<44
	binary.LittleEndian.PutUint64(m.next[:], facts)
	m.n = 8
	b := c.payload.b
	if !m.put(b, rec.service) || !m.put(b, rec.name) || !m.put(b, rec.resource) || !m.put(b, rec.kindOfWork) {
		return false
	}
	wanted := &c.wishes.labels.inKey[rec.kind]
	for i := range wanted {
		for set := c.set[i] & wanted[i]; set != 0; set &= set - 1 {
			l := label(i<<6 + bits.TrailingZeros64(set))
			if !m.putTag(b, &c.payload.tags[c.at[l]]) {
				return false
			}
		}
	}
	return true
}

// put appends a text. Most are short, and are copied with what lies behind them,
// which the next one is written over: a copy of a known length is no call.
func (m *memo) put(b []byte, t text) bool {
	n, at := m.n, int(t.at)
	if uint(n) > maxSource {
		return false
	}
	if t.n <= 32 && at+32 <= len(b) {
		*(*[32]byte)(m.next[n:]) = *(*[32]byte)(b[at:])
		m.n = n + int(t.n)
		return true
	}
	if n+int(t.n) > maxSource {
		return false
	}
	m.n += copy(m.next[n:], t.of(b))
	return true
}

// putTag appends a tag that the key is made of.
func (m *memo) putTag(b []byte, t *tag) bool {
	if m.n > maxSource || t.text.n >= maxSource || t.kind == isNested {
		return false
	}
	binary.LittleEndian.PutUint32(m.next[m.n:], uint32(t.label)|uint32(t.kind)<<12|t.text.n<<16)
	m.n += 4
	if t.kind == isText || t.kind == isBytes {
		return m.put(b, t.text)
	}
	binary.LittleEndian.PutUint64(m.next[m.n:], t.bits)
	m.n += 8
	return true
}

// find returns the key that was made of the same, nil if there is none, and the
// place for it.
func (m *memo) find() (key []byte, slot *memoSlot, hash uint64) {
	source := m.next[:m.n]
	hash = maphash.Bytes(m.seed, source)
	slot = &m.slots[hash%memoSlots]
	if slot.hash == hash && slot.n == len(source) && bytes.Equal(slot.text[:slot.n], source) {
		return slot.text[slot.n:], slot, hash
	}
	return nil, slot, hash
}

// keep remembers the key that was made of what was collected last. That of a
// service without a name depends on the language of its tracer, too.
func (m *memo) keep(slot *memoSlot, hash uint64, key []byte, service string) {
	if len(key) > maxMemoKey || strings.HasPrefix(service, "unnamed-") {
		return
	}
	slot.text = append(append(slot.text[:0], m.next[:m.n]...), key...)
	slot.hash, slot.n = hash, m.n
}

// encode makes the selected span's key.
func (c *Counter) encode(rec *record) []byte {
	if !c.source(rec) {
		c.encoded = wire.AppendKey(c.encoded[:0], c.label(rec))
		return c.encoded
	}
	c.payload.charge(text{n: uint32(c.memo.n)})
	key, slot, hash := c.memo.find()
	if key != nil {
		return key
	}
	k := c.label(rec)
	c.encoded = wire.AppendKey(c.encoded[:0], k)
	if !c.payload.bad {
		c.memo.keep(slot, hash, c.encoded, k.Service)
	}
	return c.encoded
}
