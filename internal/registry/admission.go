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
	Hash      uint32 // decides the key's partition; the same in every interval
	Collapsed Collapsed
	Folded    Collapsed // labels that have the name of a template
	Waits     bool      // it may get more when the key comes again, so the next use must ask
}

// Collapsed is the set of labels that one key lost to its budgets. span.WholeKey is
// among them where the key lost all.
type Collapsed uint16

// Has reports whether the label is in the set.
func (c Collapsed) Has(l span.Label) bool { return c&setOf(l) != 0 }

func setOf(l span.Label) Collapsed { return 1 << l }
