package registry

import "github.com/spanstatsd/spanstatsd/internal/span"

// KeyID is the dense number of a key in one interval. OriginID is the same of an
// origin. Neither means anything in another interval.
type (
	KeyID    uint32
	OriginID uint32
)

// KeyEntry is what a KeyID stands for.
type KeyEntry struct {
	Origin OriginID
	Key    span.Key
}

// Admission is what a key got in one interval.
type Admission struct {
	ID        KeyID
	Hash      uint32   // decides the key's partition; the same in every interval
	Collapsed LabelSet // labels that were lost to budgets; span.WholeKey where the key lost all
	Masked    LabelSet // labels with a mask in the place of their value
	Waits     bool     // it may get more when the key comes again, so the next use must ask
	CameAgain bool     // whatever has no place of its own came before, in this interval or in the last
}

// Whole says whether the key has all of its labels as they came.
func (a *Admission) Whole() bool { return a.Collapsed|a.Masked == 0 }

// LabelSet is a set of labels, and of span.WholeKey.
type LabelSet uint16

// Has reports whether the label is in the set.
func (s LabelSet) Has(l span.Label) bool { return s&setOf(l) != 0 }

func setOf(l span.Label) LabelSet { return 1 << l }
