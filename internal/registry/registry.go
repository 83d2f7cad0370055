package registry

import (
	"hash/maphash"
	"sync"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/template"
)

// Registry numbers the keys and origins of one interval, and keeps its budgets. What it
// gave a number never changes, so the flush reads a sealed cycle's part of it while the
// next cycle of the interval adds to it.
type Registry struct {
	config *Config

	mu         sync.Mutex
	origins    []span.Origin
	originIDs  map[span.Origin]OriginID
	ofProcess  map[int32]int // origins that a process was the first to have
	common     OriginID      // of those that there is no room for; noOrigin while there are none
	identities []uint64      // by OriginID, the same in every interval
	budgets    budgets
	shares     shares
	rows       rowTable
	keys       []KeyEntry // by KeyID
	judge      judge      // of the key that is being admitted
	scratch    []byte

	past      *past               // what the last interval has left
	sights    *sights             // of this interval and the last, what came and got no place
	spellings *sights             // the same of labels that were mended, and have a number then
	templates *template.Templates // of all intervals; nil where names are not folded
	repeats   repeats             // what has a place, and came again

	generation generation // this interval's, of the sights
}

// New makes the Registry of an interval.
func New(config *Config) *Registry {
	r := &Registry{config: config, sights: newSights(config), spellings: &sights{count: spellingPairs}}
	r.Reset(noPast())
	return r
}

// Reset makes the Registry that of a new interval, while nobody looks up keys.
func (r *Registry) Reset(past *past) {
	r.mu.Lock() // against those who ask for its size
	defer r.mu.Unlock()
	r.origins, r.identities, r.keys = nil, nil, nil
	r.originIDs, r.ofProcess, r.common = map[span.Origin]OriginID{}, map[int32]int{}, noOrigin
	r.budgets = budgets{limits: &r.config.Budgets, published: make([]publishedGates, r.config.MaxOrigins+1)}
	r.budgets.labels.init()
	r.rows = rowTable{}
	r.rows.init()
	r.past, r.repeats, r.shares = past, repeats{}, newShares(r.config, past)
	r.repeats.labels.grow(firstID)
	r.sights.clear(r.generation)
	r.spellings.clear(r.generation)
}

// Admit charges a normalised key to its origin's budgets and numbers what is left
// of it. The key is not retained and not changed. A retry is of a key that was judged
// before and not counted, so it does not come again by that.
func (r *Registry) Admit(origin OriginID, key *span.Key, isRetry bool) Admission {
	r.mu.Lock()
	defer r.mu.Unlock()
	j := &r.judge
	j.begin(r, origin, r.identities[origin])
	j.isRetry = isRetry
	defer r.budgets.report(&j.losses)
	defer j.folder.report()
	j.key(key)
	j.order()
	if id, partition, known := j.find(); known {
		return j.found(id, partition)
	}
	identity := j.rowIdentity()
	gate := r.shares.gate(origin)
	known := j.rowSight(identity, gate)
	from := r.shares.find(origin, known)
	if from == noSource {
		r.nameless(origin) // before the gate says that it is there
		r.budgets.published[origin].raise(span.WholeKey, height(gate))
		return j.overflow(gate, identity)
	}
	j.markLabels()
	j.gives, j.numbered = true, 0
	j.key(key)
	j.order()
	if id, partition, known := j.find(); known { // two labels of the key were one too many
		return j.found(id, partition)
	}
	r.shares.take(origin, from, j.bytes+rowBytes(j.words))
	return r.addRow(origin)
}

// addRow gives the judged key a row.
func (r *Registry) addRow(origin OriginID) Admission {
	j := &r.judge
	j.note()
	key := r.budgets.labels.keyOf(j.words)
	r.scratch = key.AppendCanonical(r.scratch[:0])
	partition := uint32(r.identities[origin]) ^ partitionHash(r.scratch)
	id := r.number(origin, key)
	r.rows.put(id, row{hash: hashWords(j.words), partition: partition, identity: j.rowIdentity()}, j.words)
	return Admission{ID: id, Hash: partition, Collapsed: j.collapsed, Folded: j.folder.labels, Waits: j.waits}
}

// AdmitNameless is the admission of spans whose key nobody knows: they are counted where
// keys are that find no row, though there may be rows.
func (r *Registry) AdmitNameless(origin OriginID) Admission {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.nameless(origin)
}

// nameless is the one row of an origin for all that has lost its whole key: hits, errors
// and durations survive under the origin, the labels do not.
func (r *Registry) nameless(origin OriginID) Admission {
	p := &r.budgets.published[origin]
	if p.overflow.Collapsed == 0 {
		id := r.number(origin, overflowKey)
		p.overflow = Admission{ID: id, Hash: uint32(r.identities[origin]), Collapsed: setOf(span.WholeKey)}
		r.rows.skip()
	}
	return p.overflow
}

// overflowKey has every label collapsed, as the tracers do it: the three-valued
// and boolean ones are those of a span that says nothing.
var overflowKey = func() (k span.Key) {
	for l := range span.FirstList {
		*k.Text(l) = span.Blocked
	}
	for l := span.FirstList; l < span.EndOfLists; l++ {
		*k.Tags(l) = []string{span.Blocked}
	}
	return k
}()

func (r *Registry) number(origin OriginID, key span.Key) KeyID {
	id := KeyID(len(r.keys))
	r.keys = append(r.keys, KeyEntry{Origin: origin, Key: key})
	r.repeats.rows.grow(uint32(id))
	return id
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
