package registry

import (
	"hash/maphash"
	"slices"
	"sync"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Admission is what a key got in one interval.
type Admission struct {
	ID        KeyID
	Hash      uint32 // decides the key's partition; the same in every interval
	Collapsed Collapsed
}

// Registry gives the keys and origins of one interval their dense numbers, and
// keeps its budgets. It is written by the readers inside the interval's cycles,
// under mu. What it gave a number never changes, so the flush reads a sealed
// cycle's part of it while the next cycle of the interval adds to it. Reset makes
// it new and keeps the memory of an ordinary interval.
type Registry struct {
	config *Config
	limits struct{ shared, reserve, floor allowance }

	mu        sync.Mutex
	origins   []span.Origin
	originIDs map[span.Origin]OriginID
	used      []usage // by OriginID
	values    values
	names     []tagName
	rows      rows
	standings []standing // by OriginID, of all that there may be
	shared    allowance  // taken of what all origins share
	kept      allowance  // taken of the reserve
	keys      []KeyEntry // by KeyID
	charge    charge     // of the key that is being admitted
	lost      [FieldWholeKey]uint64
	scratch   []byte
}

func New(config *Config) *Registry {
	r := &Registry{
		config: config, originIDs: map[span.Origin]OriginID{}, standings: make([]standing, config.MaxOrigins),
	}
	r.values.init()
	r.rows.init()
	r.charge.Registry = r
	r.limits.shared, r.limits.reserve, r.limits.floor = config.shared(), config.reserve(), config.floor()
	return r
}

func (r *Registry) Reset() {
	r.mu.Lock() // against those who ask for its size
	defer r.mu.Unlock()
	for origin := range r.origins {
		r.standings[origin].clear()
	}
	clear(r.origins)
	clear(r.originIDs)
	clear(r.keys)
	r.origins, r.keys, r.used, r.names = r.origins[:0], r.keys[:0], r.used[:0], r.names[:0]
	r.lost = [FieldWholeKey]uint64{}
	r.shared, r.kept = allowance{}, allowance{}
	r.values.reset()
	r.rows.reset()
	if r.spare() > r.config.spare() {
		// A flood of another kind would come on top of it.
		r.values.init()
		r.rows.init()
		r.keys, r.names = nil, nil
	}
}

// spare is what the memory for keys takes while there are none.
func (r *Registry) spare() int {
	return r.values.spare() + r.rows.spare() + cap(r.keys)*int(unsafe.Sizeof(KeyEntry{})) + cap(r.names)*int(unsafe.Sizeof(tagName{}))
}

// admitOrigin numbers an origin. It reports false where the interval has no room
// for one more.
func (r *Registry) AdmitOrigin(o span.Origin) (OriginID, bool) {
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
	r.used = append(r.used, usage{hash: uint32(maphash.Comparable(seed, o))})
	r.originIDs[o] = id
	return id, true
}

// admit charges a normalised key to its origin's budgets and numbers what is left
// of it. The key is not retained and not changed.
func (r *Registry) Admit(origin OriginID, key *span.Key) Admission {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &r.charge
	c.origin, c.room, c.isNew, c.bytes, c.collapsed = origin, r.hasRoom(origin), false, 0, 0
	if !c.key(key) {
		return r.overflow(origin)
	}
	if !c.isNew {
		if id, partition, known := r.rows.find(c.words); known {
			return Admission{ID: id, Hash: partition, Collapsed: c.collapsed}
		}
	}
	if !c.room {
		return r.overflow(origin)
	}
	r.takeRoom(origin, c.bytes+rowBytes(c.words))
	return r.open(origin)
}

// open gives the charged key a row.
func (r *Registry) open(origin OriginID) Admission {
	key := r.keyOf(r.charge.words)
	r.scratch = key.AppendCanonical(r.scratch[:0])
	a := Admission{ID: r.number(origin, key), Hash: r.used[origin].hash ^ partitionHash(r.scratch), Collapsed: r.charge.collapsed}
	r.rows.put(a.ID, a.Hash, r.charge.words)
	return a
}

// keyOf makes a key of its words again, out of the labels that the Registry owns.
func (r *Registry) keyOf(words []uint32) (k span.Key) {
	for f, label := range labels(&k) {
		*label = r.values.list[words[wordLabels+f]].text
	}
	facts := words[wordFacts]
	k.HTTPStatus, k.TraceRoot, k.Synthetics = words[wordStatus], span.TraceRoot(facts>>1&3), facts&1 != 0
	tags := words[wordTags:]
	k.PeerTags = r.tagsOf(tags[:facts>>8])
	k.AdditionalTags = r.tagsOf(tags[facts>>8:])
	return k
}

func (r *Registry) tagsOf(ids []valueID) []string {
	if len(ids) == 0 {
		return nil
	}
	tags := make([]string, len(ids))
	for i, id := range ids {
		tags[i] = r.values.list[id].text
	}
	slices.Sort(tags)
	return tags
}

// overflow is the admission of every key that found no row: hits, errors and
// durations survive under the origin, the labels do not.
func (r *Registry) overflow(origin OriginID) Admission {
	used := &r.used[origin]
	if !used.overflew {
		used.overflow, used.overflew = r.number(origin, overflowKey), true
		r.rows.skip()
		r.standings[origin].overflow(used.overflow, used.hash)
	}
	return Admission{ID: used.overflow, Hash: used.hash, Collapsed: 1 << FieldWholeKey}
}

// overflowKey has every label collapsed, as the tracers do it: the three-valued
// and boolean labels are those of a span that says nothing.
var overflowKey = span.Key{
	Service: span.Blocked, Operation: span.Blocked, Resource: span.Blocked, Type: span.Blocked,
	Kind: span.Blocked, PeerTags: []string{span.Blocked}, HTTPMethod: span.Blocked,
	HTTPEndpoint: span.Blocked, GRPCStatus: span.Blocked, ServiceSource: span.Blocked,
	AdditionalTags: []string{span.Blocked},
}

func (r *Registry) number(origin OriginID, key span.Key) KeyID {
	r.keys = append(r.keys, KeyEntry{Origin: origin, Key: key})
	return KeyID(len(r.keys) - 1)
}

// size is the number of origins and of aggregates' keys.
func (r *Registry) Size() (origins, keys int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.origins), len(r.keys)
}

// contents are the origins and keys so far. They stay as they are until the reset.
func (r *Registry) Contents() ([]span.Origin, []KeyEntry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.origins[:len(r.origins):len(r.origins)], r.keys[:len(r.keys):len(r.keys)]
}

// partitionHash is of the labels, not of their numbers: those are others in the
// next interval, and a key should stay in its partition. So is the origin's hash,
// which is mixed in.
func partitionHash(canonical []byte) uint32 { return uint32(maphash.Bytes(seed, canonical)) }
