package registry

import (
	"sync"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// KeyID is the dense number of a key in one interval. It means nothing in another.
type KeyID uint32

// KeyEntry is what a KeyID stands for.
type KeyEntry struct {
	Origin OriginID
	Key    span.Key
}

// Admission is the outcome for a key in one interval.
type Admission struct {
	ID        KeyID
	Hash      uint32   // decides the key's partition; the same in every interval
	Collapsed LabelSet // labels that were lost to budgets; span.WholeKey if the key lost all
	Masked    LabelSet // labels with a mask instead of their value
	Recurs    bool     // all of its values without a row came before in this interval
}

// Whole reports whether the key has all of its labels as they came.
func (a *Admission) Whole() bool { return a.Collapsed|a.Masked == 0 }

// LabelSet is a set of labels, and of span.WholeKey.
type LabelSet uint16

// Has reports whether the label is in the set.
func (s LabelSet) Has(l span.Label) bool { return s&setOf(l) != 0 }

func setOf(l span.Label) LabelSet { return 1 << l }

// Registry numbers the keys and origins of one interval, and keeps its budgets. What has a
// number never changes, so the flush reads a sealed cycle's part of it while the next cycle of
// the interval adds to it.
type Registry struct {
	mu       *sync.Mutex // one for the registries of all intervals
	tables   tables
	admitter admitter
}

// tables are the contents of one interval.
type tables struct {
	config    *Config
	previous  *previous
	filter    *filter // shared by all intervals
	origins   originTable
	labels    labelTable
	rows      rowTable
	rowBudget rowBudget
	lost      [kinds]uint64            // keys that lost a label, by kind of scope; tags are in their tag keys
	masked    *[span.LabelCount]uint64 // keys with a masked label, of all intervals
}

func newRegistry(mu *sync.Mutex, empty tables) *Registry {
	r := &Registry{mu: mu, tables: empty}
	r.admitter.tables = &r.tables
	r.tables.begin(&previous{})
	return r
}

// begin makes the tables those of a new interval.
func (t *tables) begin(p *previous) {
	t.previous, t.lost = p, [kinds]uint64{}
	t.origins = newOriginTable(t.config.MaxOrigins, p)
	t.labels, t.rows = newLabelTable(), newRowTable()
	t.rowBudget = newRowBudget(t.config.all(), p)
}

// AdmitOrigin numbers an origin. It reports false if the interval has no place for one more.
func (r *Registry) AdmitOrigin(o span.Origin) (OriginID, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tables.admitOrigin(r.conflated(o), 0)
}

// JoinOrigin numbers an origin of a process, which is 0 if it is not known. If the interval
// has no place for one more, or the process has half of all, it is shared: it is that of its
// service, or, if there is no place for that either, the common origin of all such others.
func (r *Registry) JoinOrigin(o span.Origin, process int32) (id OriginID, isShared bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o = r.conflated(o)
	if id, ok := r.tables.admitOrigin(o, process); ok {
		return id, false
	}
	if of := o.WithoutInstance(); of != o {
		if id, ok := r.tables.admitOrigin(of, process); ok {
			return id, true
		}
	}
	return r.tables.joinCommon(o), true
}

func (r *Registry) conflated(o span.Origin) span.Origin {
	if r.tables.config.ConflateRuntimes {
		return o.WithoutRuntimeID()
	}
	return o
}

// Admit charges a normalized key to its origin's budgets and numbers what is left of it. The
// key is not retained and not changed. A publisher admits a key at its first two uses in an
// interval, after which neither its outcome changes nor anything that the registry notes of it.
func (r *Registry) Admit(origin OriginID, key *span.Key) Admission {
	r.mu.Lock()
	defer r.mu.Unlock()
	admission := r.admitter.admit(origin, key)
	clear(r.admitter.pending) // or it would keep the message that the labels are parts of
	return admission
}

// AdmitUnlabelled is the admission of spans whose key is not known: they are counted with the
// keys that find no row, even if there are rows.
func (r *Registry) AdmitUnlabelled(origin OriginID) Admission {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tables.unlabelled(origin)
}

// unlabelled is the one row of an origin for all keys that were lost whole: hits, errors and
// durations survive under the origin, the labels do not.
func (t *tables) unlabelled(id OriginID) Admission {
	o := &t.origins.list[id]
	if o.overflow.Collapsed == 0 {
		row := t.rows.addUnlabelled(KeyEntry{Origin: id, Key: overflowKey})
		o.overflow = Admission{ID: row, Hash: uint32(o.identity), Collapsed: setOf(span.WholeKey)}
	}
	return o.overflow
}

// overflowKey has every label collapsed, as the tracers do it: the three-valued
// and boolean ones are those of a span without them.
var overflowKey = func() (k span.Key) {
	for l := range span.FirstList {
		*k.Text(l) = span.Blocked
	}
	for l := span.FirstList; l < span.EndOfLists; l++ {
		*k.Tags(l) = []string{span.Blocked}
	}
	return k
}()

// Size is the number of origins, without the common one, and of keys.
func (r *Registry) Size() (origins, keys int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.tables.origins.ids), len(r.tables.rows.entries)
}

// Contents are the origins and keys so far. They stay as they are until the interval ends.
func (r *Registry) Contents() ([]span.Origin, []KeyEntry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	names, entries := r.tables.origins.names, r.tables.rows.entries
	return names[:len(names):len(names)], entries[:len(entries):len(entries)]
}

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
