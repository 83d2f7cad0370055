package registry

import "github.com/spanstatsd/spanstatsd/internal/span"

// Collapsed is the set of labels that one key lost to its budgets. span.WholeKey is
// among them where the key lost all.
type Collapsed uint16

// Has reports whether the label is in the set.
func (c Collapsed) Has(l span.Label) bool { return c&setOf(l) != 0 }

// setOf is the set of one label.
func setOf(l span.Label) Collapsed { return 1 << l }
