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
	if of := o.OfService(); of != o {
		if id, ok := r.tables.admitOrigin(of, process); ok {
			return id, true
		}
	}
	return r.tables.joinCommon(o), true
}

func (r *Registry) conflated(o span.Origin) span.Origin {
	if r.tables.config.ConflateRuntimes {
		return o.Conflated()
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
