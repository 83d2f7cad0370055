package registry

import (
	"sync"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// KeyID numbers a key in one interval. IDs are dense, and are not valid in other intervals.
type KeyID uint32

// KeyEntry is the key that a KeyID identifies.
type KeyEntry struct {
	Origin OriginID
	Key    span.Key
}

// Admission is the result of admitting a key in one interval.
type Admission struct {
	ID        KeyID
	Hash      uint32   // determines the key's partition; the same in every interval
	Collapsed LabelSet // labels whose values were replaced by tracer_blocked_value; span.WholeKey if all were
	Masked    LabelSet // labels whose values were replaced by a mask
	AllRecur  bool     // each value that got no row of its budget has now come at least twice in this interval
}

// IsUnchanged reports whether the key has all of its labels as the client sent them.
func (a *Admission) IsUnchanged() bool { return a.Collapsed|a.Masked == 0 }

// LabelSet is a set of labels, which can include span.WholeKey.
type LabelSet uint16

// Has reports whether the label is in the set.
func (s LabelSet) Has(l span.Label) bool { return s&setOf(l) != 0 }

func setOf(l span.Label) LabelSet { return 1 << l }

// Registry assigns IDs to the keys and origins of one interval, and enforces its budgets. Entries
// that have an ID never change, so the exporters can read the entries of a sealed cycle while the
// next cycle of the interval adds more.
type Registry struct {
	mu       *sync.Mutex // shared by the registries of all intervals
	tables   tables
	admitter admitter
}

// tables is the state of one interval.
type tables struct {
	config    *Config
	previous  *previous
	filter    *filter // shared by all intervals
	origins   originTable
	labels    labelTable
	rows      rowTable
	rowBudget rowBudget
	lost      [kinds]uint64            // keys that lost a label, by kind of scope; tags are counted per tag key
	masked    *[span.LabelCount]uint64 // keys with a masked label, in all intervals
}

func newRegistry(mu *sync.Mutex, empty tables) *Registry {
	r := &Registry{mu: mu, tables: empty}
	r.admitter.tables = &r.tables
	r.tables.begin(&previous{})
	return r
}

// begin clears the tables for a new interval.
func (t *tables) begin(p *previous) {
	t.previous, t.lost = p, [kinds]uint64{}
	t.origins = newOriginTable(t.config.MaxOrigins, p)
	t.labels, t.rows = newLabelTable(), newRowTable()
	t.rowBudget = newRowBudget(t.config.all(), p)
}

// AdmitOrigin returns the ID of an origin. It reports false if the interval has no slot for another
// origin.
func (r *Registry) AdmitOrigin(o span.Origin) (OriginID, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tables.admitOrigin(r.conflated(o), 0)
}

// JoinOrigin returns the ID of an origin of a process; process is 0 if unknown. If the interval has
// no slot for another origin, or the process already has half of the slots, the ID is shared: it is
// the ID of the origin's service or, if the service has no slot either, of the common origin.
func (r *Registry) JoinOrigin(o span.Origin, process int32) (id OriginID, isShared bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o = r.conflated(o)
	if id, ok := r.tables.admitOrigin(o, process); ok {
		return id, false
	}
	if service := o.WithoutInstance(); service != o {
		if id, ok := r.tables.admitOrigin(service, process); ok {
			return id, true
		}
	}
	return r.tables.joinCommon(o), true
}

// conflated returns o without its runtime ID, if origins that differ only in that are configured to
// be one.
func (r *Registry) conflated(o span.Origin) span.Origin {
	if r.tables.config.ConflateRuntimes {
		return o.WithoutRuntimeID()
	}
	return o
}

// Admit charges a normalized key to the budgets of its origin, and returns the ID of the key with
// the labels that it keeps. It neither retains nor changes the key. A publisher admits a key at its
// first two uses in an interval. After that, neither the admission changes nor the history of the
// key.
func (r *Registry) Admit(origin OriginID, key *span.Key) Admission {
	r.mu.Lock()
	defer r.mu.Unlock()
	admission := r.admitter.admit(origin, key)
	clear(r.admitter.pending) // release the message that the labels are parts of
	return admission
}

// AdmitUnlabelled returns the admission of spans whose key is unknown. They share the overflow row
// of their origin with the keys that get no row.
func (r *Registry) AdmitUnlabelled(origin OriginID) Admission {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tables.unlabelled(origin)
}

// unlabelled returns the admission to the overflow row of an origin. It counts the hits, errors and
// durations of all keys that lost all labels.
func (t *tables) unlabelled(id OriginID) Admission {
	o := &t.origins.list[id]
	if o.overflow.Collapsed == 0 { // the origin has no overflow row yet
		row := t.rows.addUnlabelled(KeyEntry{Origin: id, Key: overflowKey})
		o.overflow = Admission{ID: row, Hash: uint32(o.identity), Collapsed: setOf(span.WholeKey)}
	}
	return o.overflow
}

// overflowKey has every label collapsed, as in the tracers. Its three-valued and boolean labels
// have the values of a span without them.
var overflowKey = func() (k span.Key) {
	for l := range span.FirstList {
		*k.Text(l) = span.Blocked
	}
	for l := span.FirstList; l < span.EndOfLists; l++ {
		*k.Tags(l) = []string{span.Blocked}
	}
	return k
}()

// Size returns the number of origins, without the common one, and the number of keys.
func (r *Registry) Size() (origins, keys int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.tables.origins.ids), len(r.tables.rows.entries)
}

// Contents returns the current origins and keys. The returned entries do not change until the
// interval ends.
func (r *Registry) Contents() ([]span.Origin, []KeyEntry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	names, entries := r.tables.origins.names, r.tables.rows.entries
	return names[:len(names):len(names)], entries[:len(entries):len(entries)]
}

// Intervals owns the registries: one per interval, two in alternation. A flush request seals a
// cycle before its interval ends. The next cycle continues to use the interval's registry, so
// budgets, rows and key IDs last until the end of the interval, and a client cannot get another
// budget by requesting flushes.
//
// When an interval begins, the registry of the interval before the last is unused. The sealer
// begins an interval while it begins a cycle n, after it has sealed cycle n-2 and the exporters
// have released it, so no publisher is inside n-2 or an earlier cycle. Cycle n-1 belongs to the
// last interval; n-2 belongs to the last one or to an earlier one.
type Intervals struct {
	mu         sync.Mutex // guards all fields, and both registries
	number     uint64     // of the current interval
	registries [2]*Registry
	filter     *filter
	collapses  collapses
	masked     [span.LabelCount]uint64 // keys with a masked label
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

// Begin begins a new interval, with the registry of the interval before the last. The new interval
// gets a snapshot of the last one. Only the sealer calls Begin.
func (i *Intervals) Begin() {
	i.mu.Lock()
	defer i.mu.Unlock()
	previous := i.Registry().tables.snapshot()
	i.filter.next()
	i.number++
	reused := &i.Registry().tables // of the interval before the last
	i.collapses.take(reused)
	reused.begin(previous)
}

// Number returns the number of the current interval. Only the sealer calls it.
func (i *Intervals) Number() uint64 { return i.number }

// Registry returns the registry of the current interval. Only the sealer calls it.
func (i *Intervals) Registry() *Registry { return i.registries[i.number%2] }

// Size returns the number of origins, without the common one, and of keys in the current interval.
func (i *Intervals) Size() (origins, keys int) {
	i.mu.Lock()
	current := i.Registry()
	i.mu.Unlock()
	return current.Size()
}

// Masked returns the number of keys counted with a mask, by label. It contains every label that can
// be masked, also if its number is 0.
func (i *Intervals) Masked() map[string]uint64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	masked := map[string]uint64{}
	for _, l := range maskedLabels {
		masked[l.String()] = i.masked[l]
	}
	return masked
}

// MostCollapsed returns the label that most keys have lost a value of since the last call, and the
// number of these keys. The label is a label's name, or a list's name and a tag key. If keys is 0,
// no key lost a label.
func (i *Intervals) MostCollapsed() (label string, keys uint64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, r := range i.registries {
		i.collapses.take(&r.tables)
	}
	return i.collapses.most()
}

// collapses counts the keys that lost a label, by name, over all intervals. A label is lost if it
// exceeds its budget, or if it is new and its key gets no row. The counts are approximate: keys
// that a connection finds in its own cache are not counted again, and beyond maxCollapses names, tag
// keys are counted under their list.
type collapses map[string]uint64 // by name of the label, or name of the list and tag key

// maxCollapses limits the number of names, because clients choose them.
const maxCollapses = 256

// take moves the counts of an interval into c.
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

// add adds keys to the count of name, or to that of fallback if there are too many names already.
func (c collapses) add(name, fallback string, keys uint64) {
	if keys == 0 {
		return
	}
	if _, known := c[name]; !known && len(c) >= maxCollapses {
		name = fallback
	}
	c[name] += keys
}

// most returns the name with the most keys, and resets all counts.
func (c collapses) most() (name string, keys uint64) {
	for n, k := range c {
		if k > keys || k == keys && n < name {
			name, keys = n, k
		}
	}
	clear(c)
	return name, keys
}
