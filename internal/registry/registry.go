package registry

import (
	"hash/maphash"
	"sync"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Registry numbers the keys and origins of one interval, and keeps its budgets. What it
// gave a number never changes, so the flush reads a sealed cycle's part of it while the
// next cycle of the interval adds to it.
type Registry struct {
	config *Config

	mu           sync.Mutex
	origins      []span.Origin
	originIDs    map[span.Origin]OriginID
	ofProcess    map[int32]int // origins that a process was the first to have
	common       OriginID      // of those that there is no room for; noOrigin while there are none
	originHashes []uint32      // by OriginID, the same in every interval
	budgets      budgets
	room         room
	rows         rowTable
	keys         []KeyEntry // by KeyID
	charge       charge     // of the key that is being admitted
	scratch      []byte
}

// New makes the Registry of an interval.
func New(config *Config) *Registry {
	r := &Registry{config: config}
	r.charge.budgets = &r.budgets
	r.Reset()
	return r
}

// Reset makes the Registry that of a new interval, while nobody looks up keys.
func (r *Registry) Reset() {
	r.mu.Lock() // against those who ask for its size
	defer r.mu.Unlock()
	r.origins, r.originHashes, r.keys = nil, nil, nil
	r.originIDs, r.ofProcess, r.common = map[span.Origin]OriginID{}, map[int32]int{}, noOrigin
	r.budgets = budgets{limits: &r.config.Budgets, exhausted: make([]exhausted, r.config.MaxOrigins+1)}
	r.budgets.labels.init()
	r.rows = rowTable{}
	r.rows.init()
	r.room = room{}
	r.room.limits.shared, r.room.limits.reserve, r.room.limits.floor = r.config.shared(), r.config.reserve(), r.config.floor()
}

// Admit charges a normalised key to its origin's budgets and numbers what is left
// of it. The key is not retained and not changed.
func (r *Registry) Admit(origin OriginID, key *span.Key) Admission {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &r.charge
	c.begin(origin, r.room.has(origin))
	if !c.key(key) {
		return r.overflow(origin)
	}
	hash := hashWords(c.words)
	if !c.hasNew {
		if id, partition, known := r.rows.find(hash, c.words); known {
			return Admission{ID: id, Hash: partition, Collapsed: c.collapsed}
		}
	}
	if !c.hasRoom {
		return r.overflow(origin)
	}
	r.room.take(origin, c.bytes+rowBytes(c.words))
	return r.addRow(origin, hash)
}

// addRow gives the charged key a row.
func (r *Registry) addRow(origin OriginID, hash uint64) Admission {
	key := r.budgets.labels.keyOf(r.charge.words)
	r.scratch = key.AppendCanonical(r.scratch[:0])
	a := Admission{
		ID: r.number(origin, key), Hash: r.originHashes[origin] ^ partitionHash(r.scratch),
		Collapsed: r.charge.collapsed,
	}
	r.rows.put(a.ID, a.Hash, hash, r.charge.words)
	return a
}

// overflow is the admission of every key that found no row: hits, errors and
// durations survive under the origin, the labels do not.
func (r *Registry) overflow(origin OriginID) Admission {
	to := r.nameless(origin) // before the bit says that it is there
	if e := &r.budgets.exhausted[origin]; !e.load().Has(span.WholeKey) {
		e.set(span.WholeKey)
	}
	return to
}

// AdmitNameless is the admission of spans whose key nobody knows: they are counted where
// keys are that find no row, though there may be rows.
func (r *Registry) AdmitNameless(origin OriginID) Admission {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.nameless(origin)
}

// nameless is the one row of an origin for all that has lost its whole key.
func (r *Registry) nameless(origin OriginID) Admission {
	e := &r.budgets.exhausted[origin]
	if e.overflow.Collapsed == 0 {
		e.overflow = Admission{ID: r.number(origin, overflowKey), Hash: r.originHashes[origin], Collapsed: setOf(span.WholeKey)}
		r.rows.skip()
	}
	return e.overflow
}

// overflowKey has every label collapsed, as the tracers do it: the three-valued
// and boolean ones are those of a span that says nothing.
var overflowKey = func() (k span.Key) {
	for l := range span.FirstList {
		*k.Text(l) = span.Blocked
	}
	for l := span.FirstList; l < span.WholeKey; l++ {
		*k.Tags(l) = []string{span.Blocked}
	}
	return k
}()

func (r *Registry) number(origin OriginID, key span.Key) KeyID {
	r.keys = append(r.keys, KeyEntry{Origin: origin, Key: key})
	return KeyID(len(r.keys) - 1)
}

// Size is the number of origins, without the common one, and of keys.
func (r *Registry) Size() (origins, keys int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.originIDs), len(r.keys)
}

// Contents are the origins and keys so far. They stay as they are until the reset.
func (r *Registry) Contents() ([]span.Origin, []KeyEntry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.origins[:len(r.origins):len(r.origins)], r.keys[:len(r.keys):len(r.keys)]
}

// partitionHash is of the labels, not of their numbers: those are others in the
// next interval, and a key should stay in its partition. So is the origin's hash,
// which is mixed in.
func partitionHash(canonical []byte) uint32 { return uint32(maphash.Bytes(seed, canonical)) }
