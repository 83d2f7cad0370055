package registry

import (
	"sync/atomic"

	"github.com/spanstatsd/spanstatsd/internal/template"
)

// Intervals own the registries: one an interval, two in turn. A report seals a
// cycle before its interval ends; the cycle after it goes on with the interval's
// registry, so its budgets, its rows and its key ids last until the boundary, and
// no tracer gets a second budget by asking.
//
// The registry of the interval before the last is free when the next one begins:
// the sealer begins it while it opens a cycle n, after it has sealed n-2, so that
// no publisher is inside that one, and the flush has released it and all before it.
// Cycle n-1 belongs to the last interval, n-2 and those before to it or to earlier.
type Intervals struct {
	number     uint64 // of the current one; the sealer's own
	registries [2]*Registry
	current    atomic.Pointer[Registry] // for those who ask for its size
	collapses  collapses
	templates  *template.Templates // of all intervals; nil where names are not folded
}

// NewIntervals begins the first interval.
func NewIntervals(config *Config) *Intervals {
	i := &Intervals{collapses: newCollapses()}
	if config.FoldNames {
		i.templates = template.New()
	}
	for n := range i.registries {
		i.registries[n] = New(config)
		i.registries[n].templates = i.templates
	}
	i.registries[1].sights, i.registries[1].generation = i.registries[0].sights, 1
	i.registries[1].spellings = i.registries[0].spellings
	i.current.Store(i.Registry())
	return i
}

// Begin makes the registry of the interval before the last one that of a new one, which
// gets what the last one leaves.
// The sealer alone calls it.
func (i *Intervals) Begin() {
	left := i.Registry().leave()
	i.number++
	i.collapses.take(i.Registry())
	i.Registry().Reset(left)
	i.current.Store(i.Registry())
	if i.templates != nil {
		i.templates.Begin()
	}
}

// Number tells the current interval from all others. The sealer alone asks.
func (i *Intervals) Number() uint64 { return i.number }

// Registry is that of the current interval. The sealer alone asks.
func (i *Intervals) Registry() *Registry { return i.registries[i.number%2] }

// Size is the number of origins and of keys in the current interval.
func (i *Intervals) Size() (origins, keys int) { return i.current.Load().Size() }

// MostCollapsed returns the label that most keys have lost a value of since the last
// call, and their number: a label's name, or a list's name and a tag key. None of them
// lost any if the number is 0.
func (i *Intervals) MostCollapsed() (label string, keys uint64) {
	for _, r := range i.registries {
		i.collapses.take(r)
	}
	return i.collapses.most()
}
