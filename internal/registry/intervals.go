package registry

import (
	"sync"

	"github.com/spanstatsd/spanstatsd/internal/span"
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
	mu         sync.Mutex // guards all that is here, and in both registries
	number     uint64     // of the current one
	registries [2]*Registry
	filter     *filter
	collapses  collapses
	masked     [span.LabelCount]uint64 // keys
}

// NewIntervals begins the first interval.
func NewIntervals(config *Config) *Intervals {
	i := &Intervals{collapses: collapses{}}
	i.filter = newFilter(filterBytes(config.LabelBytes))
	for n := range i.registries {
		i.registries[n] = newRegistry(&i.mu, tables{config: config, filter: i.filter, masked: &i.masked})
	}
	return i
}

// Begin makes the registry of the interval before the last one that of a new one, which
// gets what the last one leaves.
// The sealer alone calls it.
func (i *Intervals) Begin() {
	i.mu.Lock()
	defer i.mu.Unlock()
	left := i.Registry().tables.snapshot()
	i.filter.next()
	i.number++
	i.collapses.take(&i.Registry().tables)
	i.Registry().tables.begin(left)
}

// Number tells the current interval from all others. The sealer alone asks.
func (i *Intervals) Number() uint64 { return i.number }

// Registry is that of the current interval. The sealer alone asks.
func (i *Intervals) Registry() *Registry { return i.registries[i.number%2] }

// Size is the number of origins, without the common one, and of keys in the current interval.
func (i *Intervals) Size() (origins, keys int) {
	i.mu.Lock()
	now := i.Registry()
	i.mu.Unlock()
	return now.Size()
}

// Masked is how many keys were counted with a mask, by label. Every label that may be masked is
// there, also at 0.
func (i *Intervals) Masked() map[string]uint64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	masked := map[string]uint64{}
	for _, l := range maskedLabels {
		masked[l.String()] = i.masked[l]
	}
	return masked
}

// MostCollapsed returns the label that most keys have lost a value of since the last
// call, and their number: a label's name, or a list's name and a tag key. None of them
// lost any if the number is 0.
func (i *Intervals) MostCollapsed() (label string, keys uint64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, r := range i.registries {
		i.collapses.take(&r.tables)
	}
	return i.collapses.most()
}

// collapses adds up, over intervals and by name, the keys that lost a label: over its budget, or
// new where there was no row for a new key. It is what a person wants to know of a flood, and an
// approximate answer will do: a key that comes again from a connection's own table is not counted
// again, and beyond maxCollapses names the other tag keys stand under their list.
type collapses map[string]uint64 // by name of the label, or name of the list and tag key

// maxCollapses bounds the names, which tracers choose.
const maxCollapses = 256

// take adds what an interval has counted so far, and takes it from there.
func (c collapses) take(t *tables) {
	for kind := range t.lost {
		l := span.Label(kind)
		if kind >= span.LabelCount { // of the tag keys of a list
			l = span.FirstList + span.Label(kind-span.LabelCount)
		}
		c.add(l.String(), l.String(), t.lost[kind])
	}
	t.lost = [kinds]uint64{}
	for i := range t.labels.list {
		if l := &t.labels.list[i]; l.tags != nil && l.tags.lost > 0 {
			list := span.FirstList + span.Label(l.scope.kind-int32(span.LabelCount))
			c.add(list.String()+" "+l.text, list.String(), l.tags.lost)
			l.tags.lost = 0
		}
	}
}

func (c collapses) add(name, orElse string, keys uint64) {
	if keys == 0 {
		return
	}
	if _, known := c[name]; !known && len(c) >= maxCollapses {
		name = orElse
	}
	c[name] += keys
}

// most returns the name under which most keys stand, and forgets all.
func (c collapses) most() (name string, keys uint64) {
	for n, k := range c {
		if k > keys || k == keys && n < name {
			name, keys = n, k
		}
	}
	clear(c)
	return name, keys
}
