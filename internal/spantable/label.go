package spantable

// Label is the number of a tag's name among those that some rule asks for.
type Label uint8

// Other is the label of every name that no rule asks for.
const Other Label = 0

// MaxLabels bounds the labels, and with them what an operator or an agent may ask for.
const MaxLabels = 256

// Wanted is 1 for a label and 0 for Other, without a branch on which it is.
func (l Label) Wanted() int {
	if l != Other {
		return 1
	}
	return 0
}

// LabelSet is a set of labels.
type LabelSet [MaxLabels / 64]uint64

// LabelsOf is the set of some labels.
func LabelsOf(all ...Label) (s LabelSet) {
	for _, l := range all {
		s.Add(l)
	}
	return s
}

// Add adds a label.
func (s *LabelSet) Add(l Label) { s[l>>6] |= 1 << (l & 63) }

// Has says whether a label is in the set.
func (s *LabelSet) Has(l Label) bool { return s[l>>6]&(1<<(l&63)) != 0 }
