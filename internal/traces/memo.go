package traces

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
	policy *Policy // that its keys were made for
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
	// memoSlots and memoText bound what a memo holds, to 2 MB where all of its keys are
	// as long as can be; those of a web application take a sixth.
	memoSlots   = 1 << 11
	memoText    = maxSource + maxMemoKey // of one slot
	maxSource   = 384
	maxMemoKey  = 512
	sourceSlack = 64
)

// reset forgets all keys where they were made for other policy.
func (m *memo) reset(policy *Policy) {
	if m.policy == policy {
		return
	}
	if m.slots == nil {
		m.seed = maphash.MakeSeed()
	}
	m.policy, m.slots = policy, make([]memoSlot, memoSlots)
}

// source collects what the selected span's key is made of. It reports false where
// that is too much to be remembered, or can't be.
func (c *Counter) source(rec *record) bool {
	m, b := &c.memo, c.payload.b
	length := uint64(rec.service.n) + uint64(rec.name.n) + uint64(rec.resource.n) + uint64(rec.kindOfWork.n)
	if length > maxSource-8 {
		return false
	}
	facts := uint64(rec.kind) | uint64(rec.service.n)<<8 | uint64(rec.name.n)<<20 | uint64(rec.resource.n)<<32 | uint64(rec.kindOfWork.n)<<44
	if rec.parent == 0 {
		facts |= 1 << 4
	}
	if c.synthetic {
		facts |= 1 << 5
	}
	binary.LittleEndian.PutUint64(m.next[:], facts)
	n := m.put(8, b, rec.service)
	n = m.put(n, b, rec.name)
	n = m.put(n, b, rec.resource)
	n = m.put(n, b, rec.kindOfWork)
	wanted := &c.policy.labels.inKey[rec.kind]
	for i := range wanted {
		for set := c.set[i] & wanted[i]; set != 0; set &= set - 1 {
			t := &c.payload.tags[c.at[i<<6+bits.TrailingZeros64(set)]]
			if n > maxSource || t.kind == isNested {
				return false
			}
			// A number has no length, and a text no number.
			size := uint64(0)
			if t.isWritten() {
				size = t.bits >> 32
			}
			binary.LittleEndian.PutUint64(m.next[n:], size<<16|uint64(t.kind)<<8|uint64(t.label))
			if t.isWritten() {
				n = m.put(n+8, b, t.text())
			} else {
				binary.LittleEndian.PutUint64(m.next[n+8:], t.bits)
				n += 16
			}
		}
	}
	m.n = n
	return n <= maxSource
}

// put appends a text, or as much of it as there is room for. Most are short, and are
// copied with what lies behind them, which the next one is written over: a copy of a
// known length is no call.
func (m *memo) put(n int, b []byte, t text) int {
	if t.n > 32 || int(t.at)+32 > len(b) {
		return n + copy(m.next[n:], t.of(b))
	}
	*(*[32]byte)(m.next[n:]) = *(*[32]byte)(b[t.at:])
	return n + int(t.n)
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
	if size := m.n + len(key); cap(slot.text) < size {
		slot.text = make([]byte, 0, size) // as much as it takes, and not twice that
	}
	slot.text = append(append(slot.text[:0], m.next[:m.n]...), key...)
	slot.hash, slot.n = hash, m.n
}

// encode makes the selected span's key. It is good until the next.
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
