package oteltraces

import (
	"encoding/binary"

	"github.com/spanstatsd/spanstatsd/internal/bytecache"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// keyCache remembers keys by what they are made of, as it lies in a body. A span whose key is
// known costs a copy, a hash and a comparison; nothing of its labels is looked up, joined or
// encoded again.
type keyCache struct {
	bytecache.Cache
	policy *Policy // for which its keys were made
	n      int     // bytes of the source that is looked for
}

// reset forgets all keys where they were made by another policy.
func (m *keyCache) reset(policy *Policy) {
	if m.policy == policy {
		return
	}
	m.policy = policy
	m.Reset()
}

// source collects what a span's key is made of: its facts, its service and name, and its tags
// and those of its resource, as they stand in the body. It reports false where that is too
// much to be cached.
func (m *keyCache) source(p *payload, rec *record, r *resource, service string) bool {
	if uint64(len(service))+uint64(rec.name.len) > bytecache.MaxSource-8 {
		return false
	}
	facts := uint64(rec.kind) | uint64(len(service))<<16 | uint64(rec.name.len)<<32
	if rec.isRoot {
		facts |= 1 << 8
	}
	if rec.code == codeOK {
		facts |= 1 << 9
	}
	binary.LittleEndian.PutUint64(m.Source[:], facts)
	n := 8 + copy(m.Source[8:], service)
	n += copy(m.Source[n:], rec.name.of(p.body))
	n = putTags(&m.Cache, n, p, p.tags[rec.first:rec.last])
	n = putTags(&m.Cache, n, p, p.tags[r.ownTag:r.lastTag])
	m.n = n
	return n <= bytecache.MaxSource
}

// encode makes a span's key. It is good until the next.
func (c *Counter) encode(rec *record, r *resource, service string) []byte {
	if !c.keys.source(&c.payload, rec, r, service) {
		c.encoded = wire.AppendKey(c.encoded[:0], c.label(rec, r, service))
		return c.encoded
	}
	key, place := c.keys.Find(c.keys.n)
	if key == nil {
		c.encoded = wire.AppendKey(c.encoded[:0], c.label(rec, r, service))
		key = c.encoded
		c.keys.Keep(place, key)
	}
	return key
}

// putTags appends tags to a source, up to where it is too long.
func putTags(m *bytecache.Cache, n int, p *payload, tags []tag) int {
	for i := range tags {
		t := &tags[i]
		if n > bytecache.MaxSource {
			break
		}
		head := uint64(t.label) | uint64(t.kind)<<8
		if t.kind != isText {
			binary.LittleEndian.PutUint64(m.Source[n:], head)
			binary.LittleEndian.PutUint64(m.Source[n+8:], t.bits)
			n += 16
			continue
		}
		value := t.text()
		binary.LittleEndian.PutUint64(m.Source[n:], head|uint64(value.len)<<16)
		n += 8 + copy(m.Source[n+8:], value.of(p.body))
	}
	return n
}
