package rules

import (
	"encoding/binary"

	"github.com/spanstatsd/spanstatsd/internal/bytecache"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/spantable"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// Keys makes the bytes of keys, and remembers them by their sources: all that a key is made of.
type Keys struct {
	cache   bytecache.Cache
	policy  any // for which the keys were made
	length  int // of the source that is being written
	isKept  bool
	place   bytecache.Place
	encoded []byte
}

// Use forgets all keys that were made by another policy, which is a pointer.
func (k *Keys) Use(policy any) {
	if k.policy != policy {
		k.policy = policy
		k.cache.Reset()
	}
}

// Begin begins a source with what a key is made of beside texts and tags.
func (k *Keys) Begin(facts uint64) {
	binary.LittleEndian.PutUint64(k.cache.Source[:], facts)
	k.length = 8
}

// Put appends a text, whose length is among the facts. Of one that is too long it appends as much
// as there is room for, and the source is too long.
func (k *Keys) Put(text []byte) { k.length += copy(k.cache.Source[k.length:], text) }

// PutTag appends a tag. It reports false where the source is too long for more.
func (k *Keys) PutTag(t *spantable.Table, tag *spantable.Tag) bool {
	n := k.length
	if n > bytecache.MaxSource {
		return false
	}
	head := uint64(tag.Label) | uint64(tag.Value)<<8
	if !tag.IsWritten() {
		binary.LittleEndian.PutUint64(k.cache.Source[n:], head)
		binary.LittleEndian.PutUint64(k.cache.Source[n+8:], tag.Bits)
		k.length += 16
		return true
	}
	text := t.Bytes(tag.Text())
	binary.LittleEndian.PutUint64(k.cache.Source[n:], head|uint64(len(text))<<16)
	k.length += 8 + copy(k.cache.Source[n+8:], text)
	return true
}

// Length is that of the source that was written.
func (k *Keys) Length() uint32 { return uint32(k.length) }

// Find returns the key that was made of the source, nil where it is not known. It is good until
// the next key is made.
func (k *Keys) Find() (key []byte) {
	if k.isKept = k.length <= bytecache.MaxSource; !k.isKept {
		return nil
	}
	key, k.place = k.cache.Find(k.length)
	return key
}

// Encode returns the bytes of a key that Find did not find, good until the next.
func (k *Keys) Encode(key *span.Key) []byte {
	k.encoded = wire.AppendKey(k.encoded[:0], key)
	return k.encoded
}

// Keep remembers the key that was encoded last, of the source that was looked for last.
func (k *Keys) Keep() {
	if k.isKept {
		k.cache.Keep(k.place, k.encoded)
	}
}
