package traces

import (
	"encoding/binary"
	"math/bits"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/bytecache"
	"github.com/spanstatsd/spanstatsd/internal/msgpack"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// keyCache remembers keys by what they are made of, as it lies in a body. A span whose key is
// known costs a copy, a hash and a comparison; nothing of its labels is checked, mended,
// quantised or encoded again.
type keyCache struct {
	bytecache.Cache
	policy *Policy // for which its keys were made
	n      int     // bytes of the source that is looked for
}

// reset forgets all keys where they were made for other policy.
func (m *keyCache) reset(policy *Policy) {
	if m.policy == policy {
		return
	}
	m.policy = policy
	m.Reset()
}

// source collects what the selected span's key is made of. It reports false where that is
// too much to be cached, or can't be.
func (c *Counter) source(rec *record) bool {
	m, b := &c.keys, c.payload.body
	length := uint64(rec.service.Len) + uint64(rec.name.Len) + uint64(rec.resource.Len) + uint64(rec.kindOfWork.Len)
	if length > bytecache.MaxSource-8 {
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
	binary.LittleEndian.PutUint64(m.Source[:], facts)
	n := m.put(8, b, rec.service)
	n = m.put(n, b, rec.name)
	n = m.put(n, b, rec.resource)
	n = m.put(n, b, rec.kindOfWork)
	wanted := &c.own.inKey[rec.kind]
	for i := range wanted {
		for set := c.set[i] & wanted[i]; set != 0; set &= set - 1 {
			t := &c.payload.tags[c.at[i<<6+bits.TrailingZeros64(set)]]
			if n > bytecache.MaxSource || t.kind == isNested {
				return false
			}
			// A number has no length, and a text no number.
			size := uint64(0)
			if t.isWritten() {
				size = t.bits >> 32
			}
			binary.LittleEndian.PutUint64(m.Source[n:], size<<16|uint64(t.kind)<<8|uint64(t.label))
			if t.isWritten() {
				n = m.put(n+8, b, t.text())
			} else {
				binary.LittleEndian.PutUint64(m.Source[n+8:], t.bits)
				n += 16
			}
		}
	}
	m.n = n
	return n <= bytecache.MaxSource
}

// put appends a text, or as much of it as there is room for.
func (m *keyCache) put(n int, b []byte, t msgpack.Text) int { return n + copy(m.Source[n:], t.Of(b)) }

// encode makes the selected span's key. It is good until the next.
func (c *Counter) encode(rec *record) []byte {
	if !c.source(rec) {
		c.encoded = wire.AppendKey(c.encoded[:0], c.label(rec))
		return c.encoded
	}
	c.payload.charge(msgpack.Text{Len: uint32(c.keys.n)})
	key, place := c.keys.Find(c.keys.n)
	if key != nil {
		return key
	}
	k := c.label(rec)
	c.encoded = wire.AppendKey(c.encoded[:0], k)
	// The name of a service without one depends on the language of its tracer, too.
	if !c.payload.Failed() && !strings.HasPrefix(k.Service, "unnamed-") {
		c.keys.Keep(place, c.encoded)
	}
	return c.encoded
}
