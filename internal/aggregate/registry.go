package aggregate

import (
	"hash/maphash"
	"sync"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// seed is one a process, so that nobody outside can choose keys that collide.
var seed = maphash.MakeSeed()

// Admission is what a key got in one cycle.
type Admission struct {
	ID        KeyID
	Hash      uint32 // decides the key's partition; the same in every cycle
	Collapsed Collapsed
}

// registry gives the keys and origins of one cycle their dense numbers. It is
// written by the readers inside its cycle, under mu, and read by the flush
// after the seal, when there are none. Reset makes it new without giving its
// memory back.
type registry struct {
	config *Config

	mu        sync.Mutex
	origins   []span.Origin
	originIDs map[span.Origin]OriginID
	budgets   []*budget          // by OriginID; kept over cycles for their memory
	overflow  map[OriginID]KeyID // the one overflow aggregate of an origin, once it needs one
	keys      []KeyEntry
	admitted  map[string]Admission // by origin and canonical key
	regular   int                  // keys without the overflow ones
	scratch   []byte
}

func newRegistry(config *Config) *registry {
	return &registry{
		config:    config,
		originIDs: map[span.Origin]OriginID{},
		overflow:  map[OriginID]KeyID{},
		admitted:  map[string]Admission{},
	}
}

func (r *registry) reset() {
	r.mu.Lock() // against those who ask for its size
	defer r.mu.Unlock()
	clear(r.origins)
	clear(r.keys)
	r.origins, r.keys, r.regular = r.origins[:0], r.keys[:0], 0
	clear(r.originIDs)
	clear(r.overflow)
	clear(r.admitted)
	for _, b := range r.budgets {
		b.reset()
	}
}

// admitOrigin numbers an origin. It reports false where the cycle has no room
// for one more.
func (r *registry) admitOrigin(o span.Origin) (OriginID, bool) {
	if r.config.ConflateRuntimes {
		o = o.Conflated()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if id, known := r.originIDs[o]; known {
		return id, true
	}
	id := OriginID(len(r.origins))
	if int(id) >= r.config.MaxOrigins {
		return 0, false
	}
	r.origins = append(r.origins, o)
	r.originIDs[o] = id
	if int(id) == len(r.budgets) {
		r.budgets = append(r.budgets, newBudget(&r.config.Budgets))
	}
	return id, true
}

// admit charges a normalised key to its origin's budgets and numbers what is
// left of it. The key is not retained and not changed.
func (r *registry) admit(origin OriginID, key *span.Key) Admission {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := *key
	collapsed := r.budgets[origin].charge(&k)
	r.scratch = k.AppendCanonical(appendOrigin(r.scratch[:0], origin))
	if known, ok := r.admitted[string(r.scratch)]; ok {
		known.Collapsed = collapsed
		return known
	}
	if r.regular >= r.config.MaxAggregates {
		return r.overflowed(origin, collapsed)
	}
	r.regular++
	r.budgets[origin].keep(&k)
	a := Admission{ID: r.number(origin, k), Hash: partitionHash(r.scratch)}
	r.admitted[string(r.scratch)] = a
	a.Collapsed = collapsed
	return a
}

// overflowed is the admission of every key that found the table full: hits,
// errors and durations survive under the origin, the labels do not.
func (r *registry) overflowed(origin OriginID, collapsed Collapsed) Admission {
	id, open := r.overflow[origin]
	if !open {
		id = r.number(origin, overflowKey)
		r.overflow[origin] = id
	}
	// Of what the origin is, not of its number: that is another one in the next cycle.
	hash := uint32(maphash.Comparable(seed, r.origins[origin]))
	return Admission{ID: id, Hash: hash, Collapsed: collapsed | 1<<FieldWholeKey}
}

// overflowKey has every label collapsed, as the tracers do it: the three-valued
// and boolean labels are those of a span that says nothing.
var overflowKey = span.Key{
	Service: span.Blocked, Operation: span.Blocked, Resource: span.Blocked, Type: span.Blocked,
	Kind: span.Blocked, PeerTags: []string{span.Blocked}, HTTPMethod: span.Blocked,
	HTTPEndpoint: span.Blocked, GRPCStatus: span.Blocked, ServiceSource: span.Blocked,
	AdditionalTags: []string{span.Blocked},
}

func (r *registry) number(origin OriginID, key span.Key) KeyID {
	r.keys = append(r.keys, KeyEntry{Origin: origin, Key: key})
	return KeyID(len(r.keys) - 1)
}

// size is the number of origins and of aggregates' keys.
func (r *registry) size() (origins, keys int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.origins), len(r.keys)
}

func appendOrigin(dst []byte, origin OriginID) []byte {
	return append(dst, byte(origin), byte(origin>>8), byte(origin>>16), byte(origin>>24))
}

// partitionHash leaves the origin's number out of the hash: that number is
// another one in the next cycle, and a key should stay in its partition.
func partitionHash(canonical []byte) uint32 {
	return uint32(maphash.Bytes(seed, canonical[4:]))
}
