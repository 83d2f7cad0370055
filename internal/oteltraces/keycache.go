package oteltraces

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// keyCache maps what a key is made of, as it lies in a body, to the key's bytes. A span
// whose key is cached costs a copy, a hash and a comparison; nothing of its labels is
// looked up, joined or encoded again.
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
	// keySlots, maxSource and maxCachedKey bound the cache to 2 MB.
	keySlots     = 1 << 11
	maxSource    = 512
	maxCachedKey = 512
	sourceSlack  = 16 // that may be written behind it before it is found to be too long
)

// reset forgets all keys where they were made by another policy.
func (m *keyCache) reset(policy *Policy) {
	if m.policy == policy {
		return
	}
	if m.slots == nil {
		m.seed = maphash.MakeSeed()
	}
	m.policy, m.slots = policy, make([]keySlot, keySlots)
}

// source collects what a span's key is made of: its facts, its service and name, and its tags
// and those of its resource, as they stand in the body. It reports false where that is too
// much to be cached.
func (m *keyCache) source(p *payload, rec *record, r *resource, service string) bool {
	if uint64(len(service))+uint64(rec.name.len) > maxSource-8 {
		return false
	}
	facts := uint64(rec.kind) | uint64(len(service))<<16 | uint64(rec.name.len)<<32
	if rec.isRoot {
		facts |= 1 << 8
	}
	if rec.code == codeOK {
		facts |= 1 << 9
	}
	binary.LittleEndian.PutUint64(m.next[:], facts)
	n := 8 + copy(m.next[8:], service)
	n += copy(m.next[n:], rec.name.of(p.body))
	n = m.put(n, p, p.tags[rec.first:rec.last])
	n = m.put(n, p, p.tags[r.ownTag:r.lastTag])
	m.n = n
	return n <= maxSource
}

// put appends tags, up to where it is too much.
func (m *keyCache) put(n int, p *payload, tags []tag) int {
	for i := range tags {
		t := &tags[i]
		if n > maxSource {
			break
		}
		head := uint64(t.label) | uint64(t.kind)<<8
		if t.kind != isText {
			binary.LittleEndian.PutUint64(m.next[n:], head)
			binary.LittleEndian.PutUint64(m.next[n+8:], t.bits)
			n += 16
			continue
		}
		value := t.text()
		binary.LittleEndian.PutUint64(m.next[n:], head|uint64(value.len)<<16)
		n += 8 + copy(m.next[n+8:], value.of(p.body))
	}
	return n
}

// find returns the key that was made of the same, nil if there is none, and the place for
// it.
func (m *keyCache) find() (key []byte, slot *keySlot, hash uint64) {
	source := m.next[:m.n]
	hash = maphash.Bytes(m.seed, source)
	slot = &m.slots[hash%keySlots]
	if slot.hash == hash && bytes.Equal(slot.text[:slot.n], source) {
		return slot.text[slot.n:], slot, hash
	}
	return nil, slot, hash
}

// keep caches the key that was made of what was collected last.
func (m *keyCache) keep(slot *keySlot, hash uint64, key []byte) {
	if len(key) > maxCachedKey {
		return
	}
	if size := m.n + len(key); cap(slot.text) < size {
		slot.text = make([]byte, 0, size) // as much as it takes, and not twice that
	}
	slot.text = append(append(slot.text[:0], m.next[:m.n]...), key...)
	slot.hash, slot.n = hash, m.n
}

// encode makes a span's key. It is good until the next.
func (c *Counter) encode(rec *record, r *resource, service string) []byte {
	if !c.keys.source(&c.payload, rec, r, service) {
		c.encoded = wire.AppendKey(c.encoded[:0], c.label(rec, r, service))
		return c.encoded
	}
	key, slot, hash := c.keys.find()
	if key == nil {
		c.encoded = wire.AppendKey(c.encoded[:0], c.label(rec, r, service))
		key = c.encoded
		c.keys.keep(slot, hash, key)
	}
	return key
}
