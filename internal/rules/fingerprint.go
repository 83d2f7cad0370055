package rules

import (
	"encoding/binary"
	"sync/atomic"

	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// MaxFingerprint is the longest fingerprint in bytes. It has space for the longest resource and some tags.
const MaxFingerprint = 8 << 10

// Fingerprint builds the cache key of a span: all parts of the span that its labels are made of, as they are
// in the body. It is a copy of some hundred bytes, and saves labelling a span like an earlier one.
type Fingerprint struct {
	bytes  [MaxFingerprint]byte
	length int // of bytes
	size   int // of all parts, including those that did not fit
}

// PolicyID tells the fingerprints of one policy from those of another, whose labels differ.
type PolicyID uint32

var lastPolicyID atomic.Uint32

// NewPolicyID returns an ID that no other policy of this process has.
func NewPolicyID() PolicyID { return PolicyID(lastPolicyID.Add(1)) }

// Reset begins a fingerprint. Facts are the parts that are neither texts nor tags.
func (f *Fingerprint) Reset(policy PolicyID, facts uint32) {
	f.length, f.size = 0, 0
	f.appendNumber(uint64(policy)<<32 | uint64(facts))
}

// AppendText appends a text with its length.
func (f *Fingerprint) AppendText(text string) {
	f.appendNumber(uint64(len(text)))
	f.appendBytes(text)
}

// AppendTag appends a tag.
func (f *Fingerprint) AppendTag(t *spantable.Table, tag *spantable.Tag) {
	head := uint64(tag.Label) | uint64(tag.Value)<<8
	if !tag.HasText() {
		f.appendNumber(head)
		f.appendNumber(tag.Bits)
		return
	}
	text := t.String(tag.Text())
	f.appendNumber(head | uint64(len(text))<<16)
	f.appendBytes(text)
}

func (f *Fingerprint) appendNumber(n uint64) {
	if f.size += 8; f.size <= MaxFingerprint {
		binary.LittleEndian.PutUint64(f.bytes[f.length:], n)
		f.length += 8
	}
}

func (f *Fingerprint) appendBytes(text string) {
	if f.size += len(text); f.size <= MaxFingerprint {
		f.length += copy(f.bytes[f.length:], text)
	}
}

// Size returns the bytes of all parts.
func (f *Fingerprint) Size() uint32 { return uint32(min(f.size, 1<<30)) }

// Bytes returns the fingerprint, or nothing if its parts are longer than MaxFingerprint. It is valid until
// the next Reset.
func (f *Fingerprint) Bytes() []byte {
	if f.size > MaxFingerprint {
		return nil
	}
	return f.bytes[:f.length]
}
