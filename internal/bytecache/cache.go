// Package bytecache remembers bytes by what they were made of, their source: the key of a
// span by the texts that lie in its body, say. Whoever has a source that was met before pays
// for a hash, a comparison and perhaps a copy, and makes nothing again. It knows nothing of
// what either of them means.
//
// It is a direct-mapped cache: what is newer takes the slot of what is older. It holds no
// part of a body, so that it outlives each.
//
// # Bounds
//
// Slots slots, each with MaxText bytes at most, MaxSource of them a source: less than 2 MiB in
// all (Bytes). What is longer is not remembered.
//
// # Threading
//
// One goroutine at a time uses a Cache. What Find returns is good until the next Keep.
package bytecache

import (
	"bytes"
	"hash/maphash"
)

// The bounds of a Cache.
const (
	Slots     = 1 << 11
	MaxSource = 512
	MaxText   = 896 // of a source and what was made of it
)

// Slack is what a caller may write of a source beyond MaxSource before it finds out that it is
// too long.
const Slack = 64

// Bytes is what a Cache takes at most.
const Bytes = Slots * (MaxText + slotBytes)

// slotBytes is a slot beside what it holds.
const slotBytes = 40

// Cache is empty until Reset.
type Cache struct {
	// Source is where the caller writes the source that is looked for.
	Source [MaxSource + Slack]byte

	seed  maphash.Seed
	slots *[Slots]slot
}

// slot is what was made, behind its source, in one piece of memory.
type slot struct {
	hash   uint64
	text   []byte
	source int // bytes of the source
}

// Place is where what is made of a source belongs.
type Place struct {
	slot   *slot
	hash   uint64
	source int
}

// Reset forgets everything.
func (c *Cache) Reset() {
	c.seed, c.slots = maphash.MakeSeed(), new([Slots]slot)
}

// Find returns what was made of the first n bytes of Source, which are MaxSource at most, nil
// if it is not known, and the place for it.
func (c *Cache) Find(n int) (made []byte, at Place) {
	source := c.Source[:n]
	at.hash, at.source = maphash.Bytes(c.seed, source), n
	at.slot = &c.slots[at.hash%Slots]
	if s := at.slot; s.hash == at.hash && bytes.Equal(s.text[:s.source], source) {
		return s.text[s.source:], at
	}
	return nil, at
}

// Keep remembers what was made of the source that was looked for last, as far as it is not too long.
func (c *Cache) Keep(at Place, made []byte) {
	size := at.source + len(made)
	if size > MaxText {
		return
	}
	s := at.slot
	if cap(s.text) < size {
		s.text = make([]byte, 0, size) // as much as it takes, and not twice that
	}
	s.text = append(append(s.text[:0], c.Source[:at.source]...), made...)
	s.hash, s.source = at.hash, at.source
}
