package traces

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"math/bits"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/msgpack"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// keyCache maps what a key is made of, as it lies in a body, to the key's bytes. A span
// whose key is cached costs a copy, a hash and a comparison; nothing of its labels is
// checked, mended, quantised or encoded again.
//
// It is a direct-mapped cache: a newer key takes the slot of an older one. It outlives the
// body and holds no part of it. Its memory is bounded by its slots and what each may hold.
type keyCache struct {
	policy *Policy // for which its keys were made
	seed   maphash.Seed
	slots  []keySlot
	next   [maxSource + sourceSlack]byte // the source of the key that is looked for
	n      int
}

// keySlot is a key behind its source, in one piece of memory.
type keySlot struct {
	hash uint64
	text []byte
	n    int // bytes of the source
}

const (
	// keySlots and keyText bound the cache to 2 MB.
	keySlots     = 1 << 11
	keyText      = maxSource + maxCachedKey // of one slot
	maxSource    = 384
	maxCachedKey = 512
	sourceSlack  = 64
)

// reset forgets all keys where they were made for other policy.
func (m *keyCache) reset(policy *Policy) {
	if m.policy == policy {
		return
	}
	if m.slots == nil {
		m.seed = maphash.MakeSeed()
	}
	m.policy, m.slots = policy, make([]keySlot, keySlots)
}

// source collects what the selected span's key is made of. It reports false where that is
// too much to be cached, or can't be.
func (c *Counter) source(rec *record) bool {
	m, b := &c.keys, c.payload.body
	length := uint64(rec.service.Len) + uint64(rec.name.Len) + uint64(rec.resource.Len) + uint64(rec.kindOfWork.Len)
	if length > maxSource-8 {
		return false
	}
	facts := uint64(rec.kind) | uint64(rec.service.Len)<<8 | uint64(rec.name.Len)<<20 | uint64(rec.resource.Len)<<32 | uint64(rec.kindOfWork.Len)<<44 | uint64(c.id)<<56
	if rec.parent == 0 {
		facts |= 1 << 4
	}
	if c.synthetic {
		facts |= 1 << 5
	}
	if c.payload.format == FormatIngest {
		facts |= 1 << 6
	}
	binary.LittleEndian.PutUint64(m.next[:], facts)
	n := m.put(8, b, rec.service)
	n = m.put(n, b, rec.name)
	n = m.put(n, b, rec.resource)
	n = m.put(n, b, rec.kindOfWork)
	wanted := &c.own.inKey[rec.kind]
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

// put appends a text, or as much of it as there is room for.
func (m *keyCache) put(n int, b []byte, t msgpack.Text) int { return n + copy(m.next[n:], t.Of(b)) }

// find returns the key that was made of the same, nil if there is none, and the
// place for it.
func (m *keyCache) find() (key []byte, slot *keySlot, hash uint64) {
	source := m.next[:m.n]
	hash = maphash.Bytes(m.seed, source)
	slot = &m.slots[hash%keySlots]
	if slot.hash == hash && bytes.Equal(slot.text[:slot.n], source) {
		return slot.text[slot.n:], slot, hash
	}
	return nil, slot, hash
}

// keep caches the key that was made of what was collected last. That of a
// service without a name depends on the language of its tracer, too.
func (m *keyCache) keep(slot *keySlot, hash uint64, key []byte, service string) {
	if len(key) > maxCachedKey || strings.HasPrefix(service, "unnamed-") {
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
	c.payload.charge(msgpack.Text{Len: uint32(c.keys.n)})
	key, slot, hash := c.keys.find()
	if key != nil {
		return key
	}
	k := c.label(rec)
	c.encoded = wire.AppendKey(c.encoded[:0], k)
	if !c.payload.Failed() {
		c.keys.keep(slot, hash, c.encoded, k.Service)
	}
	return c.encoded
}
