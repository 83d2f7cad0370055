package rules

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// The bounds of Keys. A key whose source is longer than MaxSource is made anew each time.
const (
	MaxSource = 512
	pairs     = 1 << 10
	maxText   = 896 // of a source and the key that was made of it
	slack     = 64  // that may be written of a source before it is found to be too long

	// KeysBytes is what Keys take at most.
	KeysBytes = 2 * pairs * (maxText + slotBytes)
	slotBytes = 40 // a slot beside what it holds
)

// Keys makes the bytes of keys, and remembers them by their sources: all that a key is made of. It
// is a cache of pairs of slots: what is newer takes the place of the older of its pair. It holds no part
// of a body, so that it outlives each.
type Keys struct {
	policy  any // for which the keys were made
	source  [MaxSource + slack]byte
	length  int // of the source that is being written
	seed    maphash.Seed
	pairs   [][2]slot
	hash    uint64 // of the source that was looked for last
	encoded []byte
}

// slot is a key behind its source, in one piece of memory.
type slot struct {
	hash   uint64
	text   []byte
	source int // bytes of the source
}

// Use forgets all keys that were made by another policy, which is a pointer.
func (k *Keys) Use(policy any) {
	if k.policy != policy {
		k.policy, k.seed, k.pairs = policy, maphash.MakeSeed(), make([][2]slot, pairs)
	}
}

// Begin begins a source with what a key is made of beside texts and tags.
func (k *Keys) Begin(facts uint64) {
	binary.LittleEndian.PutUint64(k.source[:], facts)
	k.length = 8
}

// Put appends a text, whose length is among the facts. Of one that is too long it appends as much
// as there is room for, and the source is too long.
func (k *Keys) Put(text []byte) { k.length += copy(k.source[k.length:], text) }

// PutTag appends a tag. It reports false where the source is too long for more.
func (k *Keys) PutTag(t *spantable.Table, tag *spantable.Tag) bool {
	n := k.length
	if n > MaxSource {
		return false
	}
	head := uint64(tag.Label) | uint64(tag.Value)<<8
	if !tag.HasText() {
		binary.LittleEndian.PutUint64(k.source[n:], head)
		binary.LittleEndian.PutUint64(k.source[n+8:], tag.Bits)
		k.length += 16
		return true
	}
	text := t.Bytes(tag.Text())
	binary.LittleEndian.PutUint64(k.source[n:], head|uint64(len(text))<<16)
	k.length += 8 + copy(k.source[n+8:], text)
	return true
}

// Length is that of the source that was written.
func (k *Keys) Length() uint32 { return uint32(k.length) }

// Find returns the key that was made of the source, nil where it is not known, and empty where spans
// of it are ignored. It is good until the next key is made.
func (k *Keys) Find() (key []byte) {
	if k.length > MaxSource {
		return nil
	}
	source := k.source[:k.length]
	k.hash = maphash.Bytes(k.seed, source)
	pair := &k.pairs[k.hash%pairs]
	for i := range pair {
		if s := &pair[i]; s.hash == k.hash && bytes.Equal(s.text[:s.source], source) {
			return s.text[s.source:]
		}
	}
	return nil
}

// Encode returns the bytes of a key that Find did not find, good until the next.
func (k *Keys) Encode(key *span.Key) []byte {
	k.encoded = wire.AppendKey(k.encoded[:0], key)
	return k.encoded
}

// Ignore is Encode for a source whose spans are ignored: the bytes of no key, which are empty.
func (k *Keys) Ignore() []byte {
	k.encoded = k.encoded[:0]
	return k.encoded
}

// Keep remembers the key that was encoded last, of the source that was looked for last.
func (k *Keys) Keep() {
	size := k.length + len(k.encoded)
	if k.length > MaxSource || size > maxText {
		return
	}
	pair := &k.pairs[k.hash%pairs]
	pair[0], pair[1] = pair[1], pair[0]
	s := &pair[0]
	if cap(s.text) < size {
		s.text = make([]byte, 0, size) // as much as it takes, and not twice that
	}
	s.text = append(append(s.text[:0], k.source[:k.length]...), k.encoded...)
	s.hash, s.source = k.hash, k.length
}
