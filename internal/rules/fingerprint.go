package rules

import (
	"encoding/binary"
	"sync/atomic"

	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// MaxFingerprint is the maximum length of a fingerprint in bytes. The longest resource and some
// tags fit.
const MaxFingerprint = 8 << 10

// Fingerprint builds the cache key for the labels of a span: a copy of all parts of the span that its
// labels depend on. It usually has some hundred bytes. Looking it up is faster than making the labels
// again for each similar span.
type Fingerprint struct {
	bytes  [MaxFingerprint]byte
	length int // used length of bytes
	size   int // total length of all parts, including those that did not fit
}

// PolicyID identifies a policy in fingerprints, because spans can have other labels by another policy.
type PolicyID uint32

var lastPolicyID atomic.Uint32

// NewPolicyID returns an ID that is unique in this process.
func NewPolicyID() PolicyID { return PolicyID(lastPolicyID.Add(1)) }

// Reset starts a fingerprint for another span. properties encodes the properties of the span that are
// neither texts nor tags, such as its kind.
func (f *Fingerprint) Reset(policy PolicyID, properties uint32) {
	f.length, f.size = 0, 0
	f.appendNumber(uint64(policy)<<32 | uint64(properties))
}

// A text and a tag begin with a number: the label of the tag, the type of its value and the length of
// its text. A text that is not a tag has the label 0, which no tag has.
const (
	typeShift   = 8
	lengthShift = 16
)

// AppendText appends a text that is not the value of a tag, preceded by its length.
func (f *Fingerprint) AppendText(text string) {
	f.appendNumber(uint64(len(text)) << lengthShift)
	f.appendBytes(text)
}

// AppendTag appends a tag of a span in t to the fingerprint: its label, which is the number of its name, the type
// of its value, and the value. A text is preceded by its length.
func (f *Fingerprint) AppendTag(t *spantable.Table, tag *spantable.Tag) {
	header := uint64(tag.Label) | uint64(tag.Type)<<typeShift
	if !tag.HasText() {
		f.appendNumber(header)
		f.appendNumber(tag.Bits)
		return
	}
	text := t.String(tag.Text())
	header |= uint64(len(text)) << lengthShift
	f.appendNumber(header)
	f.appendBytes(text)
}

// appendNumber appends the eight bytes of n. If they don't fit, it only adds their length to size.
func (f *Fingerprint) appendNumber(n uint64) {
	const numberBytes = 8
	f.size += numberBytes
	if f.size > MaxFingerprint {
		return
	}
	binary.LittleEndian.PutUint64(f.bytes[f.length:], n)
	f.length += numberBytes
}

// appendBytes appends the bytes of text. If they don't fit, it only adds their length to size.
func (f *Fingerprint) appendBytes(text string) {
	f.size += len(text)
	if f.size > MaxFingerprint {
		return
	}
	f.length += copy(f.bytes[f.length:], text)
}

// Size returns the total length of all parts.
func (f *Fingerprint) Size() uint32 { return uint32(min(f.size, 1<<30)) }

// Bytes returns the fingerprint, or nil if it would be longer than MaxFingerprint. The result is valid
// until the next Reset.
func (f *Fingerprint) Bytes() []byte {
	if f.size > MaxFingerprint {
		return nil
	}
	return f.bytes[:f.length]
}
