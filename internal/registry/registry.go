package registry

import (
	"sync"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Registry numbers the keys and origins of one interval, and keeps its budgets. What it
// gave a number never changes, so the flush reads a sealed cycle's part of it while the
// next cycle of the interval adds to it.
type Registry struct {
	mu     *sync.Mutex // one for the registries of all intervals
	tables tables
	judge  judge
}

func newRegistry(mu *sync.Mutex, empty tables) *Registry {
	r := &Registry{mu: mu, tables: empty}
	r.judge.tables = &r.tables
	r.tables.begin(noPast())
	return r
}

// AdmitOrigin numbers an origin. It reports false where the interval has no room
// for one more.
func (r *Registry) AdmitOrigin(o span.Origin) (OriginID, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tables.admitOrigin(r.conflated(o), 0)
}

// JoinOrigin numbers an origin of a process, 0 where nobody knows which. Where the interval
// has no room for one more, or the process has half of all origins, it is shared: it is that of its
// service, or where there is no room for that either, one with all such others, the common origin.
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

// Admit charges a normalised key to its origin's budgets and numbers what is left
// of it. The key is not retained and not changed. A retry is of a key that was judged
// before and not counted, so it does not come again by that.
func (r *Registry) Admit(origin OriginID, key *span.Key, isRetry bool) Admission {
	r.mu.Lock()
	defer r.mu.Unlock()
	admission := r.judge.admit(origin, key, isRetry)
	clear(r.judge.fresh) // or it would keep the message that the labels are parts of
	return admission
}

// AdmitNameless is the admission of spans whose key nobody knows: they are counted where
// keys are that find no row, though there may be rows.
func (r *Registry) AdmitNameless(origin OriginID) Admission {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tables.nameless(origin)
}

// Repeat notes that a key came again that was admitted in this interval, and so did its
// labels.
func (r *Registry) Repeat(id KeyID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	row := &r.tables.rows.list[id]
	if row.words == nil || row.cameAgain {
		return
	}
	row.cameAgain = true
	eachLabel(row.words, func(id labelID) {
		l := &r.tables.labels.list[id]
		l.cameAgain = true
		r.tables.labels.list[l.tagKey].cameAgain = true
	})
}

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
