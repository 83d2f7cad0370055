package spantable

import (
	"encoding/binary"
	"math/bits"
)

// Names maps the names of tags to labels. It is used for every tag of every span, and which tags are used is
// unpredictable for a CPU. So FindFingerprint compares only the length, the first eight and the last eight bytes
// of a name with those of one candidate, without a branch that depends on the name.
type Names struct {
	names   []string // by label
	entries [MaxLabels]nameEntry
	slots   [1 << slotBits]Label // by hash; the last label of those whose names share the hash
}

// nameEntry is the part of a name that FindFingerprint compares.
type nameEntry struct {
	fingerprint Fingerprint
	next        Label // previous label in the same slot, or Other
	// isAmbiguous is set if comparing fingerprints with this entry does not suffice: the slot contains other names,
	// too, or the name has bytes that are not in its fingerprint.
	isAmbiguous bool
}

// slotBits makes the table sixteen times as large as MaxLabels, so that few names share a slot.
const slotBits = 12

// endLen is the number of bytes at each end of a name that a fingerprint contains.
const endLen = 8

// maxFingerprinted is the maximum length of a name whose bytes are all in its fingerprint.
const maxFingerprinted = 2 * endLen

// Fingerprint identifies a name by its length, its first eight and its last eight bytes. For a shorter name, both
// parts contain the whole name, followed by zeros.
type Fingerprint struct {
	first, last uint64
	length      int
}

// FingerprintAt returns the fingerprint of the name with the given length that starts at body[start]. It reads eight
// bytes from the start of the name and eight bytes up to its end, so body must contain both ranges.
func FingerprintAt(body []byte, start, length int) Fingerprint {
	unusedBits := 64 - 8*min(length, endLen) // bits that are not part of the name
	first := binary.LittleEndian.Uint64(body[start:]) << unusedBits >> unusedBits
	last := binary.LittleEndian.Uint64(body[start+length-endLen:]) >> unusedBits
	return Fingerprint{first, last, length}
}

// Len returns the length of the name.
func (e *Fingerprint) Len() int { return e.length }

// FingerprintOf returns the fingerprint of a name.
func FingerprintOf[T string | []byte](name T) Fingerprint {
	length := len(name)
	if length >= endLen {
		var first, last [endLen]byte
		copy(first[:], name)
		copy(last[:], name[length-endLen:])
		return Fingerprint{binary.LittleEndian.Uint64(first[:]), binary.LittleEndian.Uint64(last[:]), length}
	}
	wholeName := uint64(0)
	for i := range length {
		wholeName |= uint64(name[i]) << (8 * i)
	}
	return Fingerprint{wholeName, wholeName, length}
}

// slot returns the slot of the hash table for names with this fingerprint.
func (f Fingerprint) slot() uint64 {
	mixed := f.first + bits.RotateLeft64(f.last, 29) + uint64(f.length)
	return mixed * 0x9e3779b97f4a7c15 >> (64 - slotBits)
}

// NewNames returns a table that finds the index of a name in names. It ignores empty names and
// names[0], because 0 is the label of names that are not in the table. There must be at most MaxLabels
// names.
func NewNames(names []string) *Names {
	t := &Names{names: names}
	for label, name := range names {
		if label == int(Other) || name == "" {
			continue
		}
		fingerprint := FingerprintOf(name)
		slot := fingerprint.slot()
		previous := t.slots[slot]
		sharesSlot := previous != Other
		t.entries[label] = nameEntry{
			fingerprint: fingerprint,
			next:        previous,
			isAmbiguous: sharesSlot || len(name) > maxFingerprinted,
		}
		t.slots[slot] = Label(label) // FindFingerprint does not read previous, so its entry need not become ambiguous
	}
	return t
}

// Name returns the name of a label.
func (t *Names) Name(l Label) string { return t.names[l] }

// Len returns the number of labels, including Other.
func (t *Names) Len() int { return len(t.names) }

// Find returns the label of a name, or Other.
func (t *Names) Find(name []byte) Label {
	l := t.slots[FingerprintOf(name).slot()]
	for l != Other && t.names[l] != string(name) {
		l = t.entries[l].next
	}
	return l
}

// FindFingerprint returns the label of the name with this fingerprint, or Other if there is none. If isSure
// is false, the result may be wrong, and the caller must call Find with the complete name: several names are
// in the same slot of the hash table, or the name is longer than the fingerprint.
func (t *Names) FindFingerprint(f Fingerprint) (label Label, isSure bool) {
	candidate := t.slots[f.slot()]
	entry := &t.entries[candidate]
	isSure = !entry.isAmbiguous // for all fingerprints in this slot, equal or not
	stored := &entry.fingerprint
	// A single condition on the combined differences, and a uint, are compiled without a branch, which is faster.
	difference := (stored.first ^ f.first) | (stored.last ^ f.last) | uint64(stored.length^f.length)
	found := uint(candidate)
	if difference != 0 {
		found = uint(Other)
	}
	return Label(found), isSure
}

// Label identifies the name of a tag that a rule uses. Names assigns labels.
type Label uint8

// Other is the label of all names that no rule uses.
const Other Label = 0

// MaxLabels is the maximum number of labels, including Other. It limits how many tags an operator or the
// Datadog agent can configure.
const MaxLabels = 256

// OneIfUsed returns 0 for Other and 1 for every other label. A decoder that adds this number to its count of stored
// tags needs no branch on the label, which the CPU could not predict.
func (l Label) OneIfUsed() int {
	if l != Other {
		return 1
	}
	return 0
}

// LabelSet is a set of labels.
type LabelSet [MaxLabels / 64]uint64

// LabelsOf returns the set of the given labels.
func LabelsOf(all ...Label) (s LabelSet) {
	for _, l := range all {
		s.Add(l)
	}
	return s
}

// Add adds a label to the set.
func (s *LabelSet) Add(l Label) { s[l>>6] |= 1 << (l & 63) }

// Remove removes a label from the set.
func (s *LabelSet) Remove(l Label) { s[l>>6] &^= 1 << (l & 63) }

// Union returns the set of all labels that are in s or other.
func (s *LabelSet) Union(other *LabelSet) (union LabelSet) {
	for i := range s {
		union[i] = s[i] | other[i]
	}
	return union
}

// Has reports whether a label is in the set.
func (s *LabelSet) Has(l Label) bool { return s[l>>6]&(1<<(l&63)) != 0 }

// Kind is the kind of a span. The values from KindInternal to KindConsumer are those of OTLP.
type Kind uint8

const (
	KindUnknown Kind = iota // not specified, in formats other than OTLP
	KindInternal
	KindServer
	KindClient
	KindProducer
	KindConsumer
	KindOther       // not known to the Datadog agent, which treats it as internal
	KindUnspecified // not specified, in OTLP
	Kinds           // number of kinds
)

var kindNames = [Kinds]string{
	"unknown", "internal", "server", "client", "producer", "consumer", "other", "unspecified",
}

// String returns the name of the kind.
func (k Kind) String() string { return kindNames[k] }

// KindSet is a set of span kinds.
type KindSet uint8

// KindsOf returns the set of the given kinds.
func KindsOf(kinds ...Kind) (set KindSet) {
	for _, k := range kinds {
		set |= 1 << k
	}
	return set
}

// Has reports whether a kind is in the set.
func (s KindSet) Has(k Kind) bool { return s&(1<<k) != 0 }
