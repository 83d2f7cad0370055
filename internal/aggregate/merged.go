package aggregate

import (
	"errors"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Group is what somebody else has counted already, of one key in one bucket.
type Group struct {
	Key     span.Key // its labels may be parts of a buffer
	Bucket  int64    // as its tracer began it, nanoseconds since the Unix epoch
	Mapping Mapping  // of its bins
	Counts
	OK, Errors Bins
}

// Bins is a distribution.
type Bins struct {
	Zeros uint64
	List  []Bin // lowest first, if that is at hand
}

// Bin is the spans of one bin.
type Bin struct {
	Index uint16 // at most that of its mapping's LastBin
	Spans uint64
}

// Merged is the groups of one cycle that tracers have counted: rows found by key,
// bucket and mapping. It is no drainer's: a publisher that is inside the cycle adds
// to it under mu, some hundred groups a tracer and 10 seconds, and the flush finds
// it complete, as it finds the registry.
type Merged struct {
	mu       sync.Mutex
	width    int64 // of a bucket
	oldest   int64 // start of the oldest bucket of ours that is taken
	most     int   // rows
	chunks   int   // of sketch memory, at most
	rows     []mergedRow
	places   places
	mappings []Mapping // by MappingID
	pages    linked
	wrapping wraps

	held  atomic.Uint64  // spans in the rows, for the books
	spans *atomic.Uint64 // of all cycles
}

type mergedRow struct {
	key     KeyID
	mapping MappingID
	bucket  int64
	Counts
	ok, errors distribution
}

// mergedBuckets is how many rows a key has room for, all keys together: it has one
// for each bucket and mapping that it is sent in.
const mergedBuckets = 8

// mergedShare is the part of all sketch memory that the groups of one cycle can take,
// so that two leave half of it to what the drainers count.
const mergedShare = 4

func newMerged(config *Config, sketches *SketchMemory, spans *atomic.Uint64) *Merged {
	m := &Merged{
		width: int64(config.BucketWidth), most: config.maxKeys() * mergedBuckets, chunks: sketches.limit / mergedShare,
		mappings: []Mapping{OwnMapping}, pages: linked{arena: arena{memory: sketches}}, spans: spans,
	}
	m.places.init()
	return m
}

// Why groups are not merged.
var (
	ErrOtherTime    = errors.New("merge groups: their time is none that can be kept exactly")
	ErrMappings     = errors.New("merge groups: the cycle holds sketches of too many mappings already")
	ErrNoMergedRoom = errors.New("merge groups: the cycle has no room for them")
)

// Merging is a publisher's turn to add groups to the cycle that it is inside.
type Merging struct {
	cycle *Cycle
	*Merged
}

// Merging waits for its turn, which lasts until End.
func (c *Cycle) Merging() Merging {
	c.merged.mu.Lock()
	return Merging{c, c.merged}
}

// End ends the turn.
func (m Merging) End() { m.mu.Unlock() }

// Fits says why not all of these groups can be added, or sets aside what they need.
func (m Merging) Fits(groups []Group, width uint64, now time.Time) error {
	if width != uint64(m.width) {
		return ErrOtherTime
	}
	pages, known, wrapping := 0, len(m.mappings), m.wrapping
	for i := range groups {
		g := &groups[i]
		if _, ok := m.bucketOf(g.Bucket, now.UnixNano()); !ok {
			m.mappings = m.mappings[:known]
			return ErrOtherTime
		}
		if _, ok := m.number(g.Mapping); !ok {
			m.mappings = m.mappings[:known]
			return ErrMappings
		}
		pages += pagesOf(g.OK.List) + pagesOf(g.Errors.List)
		wrapping.note(g.OK.List)
		wrapping.note(g.Errors.List)
	}
	if len(m.rows)+len(groups) > m.most || wrapping.most() > maxWraps || !m.pages.reserve(pages, m.chunks) {
		m.mappings = m.mappings[:known]
		return ErrNoMergedRoom
	}
	m.wrapping = wrapping
	return nil
}

// Add admits the key of a group that fits and adds what was counted.
func (m Merging) Add(origin OriginID, g *Group) Collapsed {
	admission := m.cycle.Admit(origin, &g.Key)
	mapping, _ := m.number(g.Mapping)
	bucket, _ := m.bucketOf(g.Bucket, g.Bucket)
	row := m.row(admission.ID, bucket, mapping)
	m.pages.add(&row.ok, &g.OK)
	m.pages.add(&row.errors, &g.Errors)
	row.Add(&g.Counts) // last: up to here it can go wrong, and the books say that it did
	m.held.Add(g.Spans)
	m.spans.Add(g.Spans)
	return admission.Collapsed
}

// number is a mapping's, which it may get now.
func (m *Merged) number(mapping Mapping) (id MappingID, ok bool) {
	for id, known := range m.mappings {
		if known == mapping {
			return MappingID(id), true
		}
	}
	if len(m.mappings) == maxMappings {
		return 0, false
	}
	m.mappings = append(m.mappings, mapping)
	return MappingID(len(m.mappings) - 1), true
}

// row finds a row, or opens it.
func (m *Merged) row(key KeyID, bucket int64, mapping MappingID) *mergedRow {
	slots, want, place := m.places.begin(hashOfRow(key, bucket, mapping))
	for {
		at, next, more := found(slots, want, place)
		if !more {
			break
		}
		place = next
		if row := &m.rows[at]; row.key == key && row.bucket == bucket && row.mapping == mapping {
			return row
		}
	}
	at := len(m.rows)
	m.rows = extend(m.rows, m.most)
	m.rows[at] = mergedRow{key: key, bucket: bucket, mapping: mapping}
	m.places.put(hashOfRow(key, bucket, mapping), uint32(at), func(at uint32) uint64 {
		row := &m.rows[at]
		return hashOfRow(row.key, row.bucket, row.mapping)
	})
	return &m.rows[at]
}

func hashOfRow(key KeyID, bucket int64, mapping MappingID) uint64 {
	return maphash.Comparable(seed, [3]int64{int64(key), bucket, int64(mapping)})
}

// open makes it that of a cycle that was opened then.
func (m *Merged) open(opened time.Time) {
	now := opened.UnixNano()
	m.oldest = now - now%m.width - mergedBack*m.width
}

// clear gives up what was merged so far, and says how many spans that were.
func (m *Merged) clear() (spans uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	spans = m.held.Load()
	m.reset()
	return spans
}

// reset keeps the memory, but that of the pages.
func (m *Merged) reset() {
	m.rows, m.mappings = m.rows[:0], m.mappings[:1]
	m.places.reset()
	m.pages.reset()
	m.wrapping = wraps{}
	m.held.Store(0)
}
