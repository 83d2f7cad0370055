package aggregate

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/sketch"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Group is what a tracer has counted itself of one key in one bucket.
type Group struct {
	Key     span.Key       // its labels may be parts of a buffer
	Bucket  int64          // as its tracer began it, nanoseconds since the Unix epoch
	Mapping sketch.Mapping // of its bins
	Counts
	OK, Errors sketch.Bins
}

// Merged is the groups of one cycle: rows found by key, bucket and mapping. No drainer
// has a part in it. Publishers that are inside the cycle add to it under mu, some hundred
// groups a tracer and 10 seconds; after the seal it belongs to the flush.
type Merged struct {
	mu        sync.Mutex
	width     int64 // of a bucket
	oldest    int64 // start of the oldest bucket of ours that is taken
	maxChunks int
	memory    *sketch.Memory // is reserved for all rows and their bins

	numbers  map[mergedKey]int // of rows
	rows     []mergedRow
	mappings []sketch.Mapping // by MappingID
	bins     int
	chunks   int // of memory, reserved

	held  atomic.Uint64  // spans in the rows, for the books
	spans *atomic.Uint64 // of all cycles
}

type mergedKey struct {
	key     registry.KeyID
	mapping sketch.MappingID
	bucket  int64
}

type mergedRow struct {
	mergedKey
	Counts
	ok, errors distribution
}

const (
	// mergedShare is the part of all sketch memory that the groups of one cycle can take,
	// so that two leave half of it to what the drainers count.
	mergedShare = 4
	// mergedBinBytes is what a bin takes in a list that has just grown.
	mergedBinBytes = 32
	// mergedRowBytes is the same of a row, in the list of them and in the map that finds it.
	mergedRowBytes = 2*int(unsafe.Sizeof(mergedRow{})) + 4*int(unsafe.Sizeof(mergedKey{})+unsafe.Sizeof(0))
)

func newMerged(config *Config, memory *sketch.Memory, spans *atomic.Uint64) *Merged {
	return &Merged{
		width:     int64(config.BucketWidth),
		maxChunks: config.SketchBytes / mergedShare / sketch.ChunkBytes, memory: memory,
		numbers: map[mergedKey]int{}, mappings: []sketch.Mapping{sketch.OwnMapping}, spans: spans,
	}
}

// Why groups are not merged.
var (
	ErrOtherTime    = errors.New("merge groups: their time is none that can be kept exactly")
	ErrMappings     = errors.New("merge groups: the cycle holds sketches of too many mappings already")
	ErrNoMergedRoom = errors.New("merge groups: the cycle has no room for them")
)

// Merging is the exclusive right to add groups to the cycle that a publisher is inside.
type Merging struct {
	cycle *Cycle
	*Merged
}

// Merging waits for the right, which lasts until End.
func (c *Cycle) Merging() Merging {
	c.merged.mu.Lock()
	return Merging{c, c.merged}
}

// End gives the right back.
func (m Merging) End() { m.mu.Unlock() }

// Reserve makes room for all of these groups, or says why they can't be added. Then
// nothing has changed.
func (m Merging) Reserve(groups []Group, width uint64, now time.Time) error {
	if width != uint64(m.width) {
		return ErrOtherTime
	}
	mappings, bins := m.mappings, m.bins
	for i := range groups {
		g := &groups[i]
		if _, ok := m.bucketOf(g.Bucket, now.UnixNano()); !ok {
			return ErrOtherTime
		}
		if !slices.Contains(mappings, g.Mapping) {
			if mappings = append(mappings, g.Mapping); len(mappings) > sketch.MaxMappings {
				return ErrMappings
			}
		}
		bins += len(g.OK.List) + len(g.Errors.List)
	}
	if !m.reserve(len(m.rows)+len(groups), bins) {
		return ErrNoMergedRoom
	}
	m.mappings = mappings
	return nil
}

// reserve reserves memory for so many rows and bins in all.
func (m *Merged) reserve(rows, bins int) bool {
	bytes := rows*mergedRowBytes + bins*mergedBinBytes
	more := (bytes+sketch.ChunkBytes-1)/sketch.ChunkBytes - m.chunks
	if more <= 0 {
		return true
	}
	if m.chunks+more > m.maxChunks || !m.memory.Reserve(more) {
		return false
	}
	m.chunks += more
	return true
}

// Add admits the key of a group that there is room for, and adds what was counted.
func (m Merging) Add(origin registry.OriginID, g *Group) registry.LabelSet {
	mapping := slices.Index(m.mappings, g.Mapping)
	if mapping < 0 {
		panic("BUG: a group is added that no room was reserved for")
	}
	admission := m.cycle.Admit(origin, &g.Key, false)
	switch {
	case g.Spans < 2: // it came once
	case admission.Waits:
		admission = m.cycle.Admit(origin, &g.Key, false)
	default:
		m.cycle.Repeat(admission.ID)
	}
	bucket, _ := m.bucketOf(g.Bucket, g.Bucket)
	row := m.row(mergedKey{admission.ID, sketch.MappingID(mapping), bucket})
	m.bins += row.ok.add(&g.OK) + row.errors.add(&g.Errors)
	row.Add(&g.Counts) // last: the books count what is in the rows
	m.held.Add(g.Spans)
	m.spans.Add(g.Spans)
	return admission.Collapsed
}

func (m *Merged) row(key mergedKey) *mergedRow {
	number, known := m.numbers[key]
	if !known {
		number = len(m.rows)
		m.numbers[key] = number
		m.rows = append(m.rows, mergedRow{mergedKey: key})
	}
	return &m.rows[number]
}

// errorDuration is what of the row's duration spans with an error took: all of it where all
// have one, and else what their bins stand for.
func (r *mergedRow) errorDuration(mapping sketch.Mapping) float64 {
	if r.Errors >= r.Hits {
		return r.Duration
	}
	return min(r.Errors*r.errors.mean(mapping), r.Duration)
}

// begin makes it that of a cycle that begins then.
func (m *Merged) begin(now time.Time) {
	m.oldest = now.UnixNano() - now.UnixNano()%m.width - mergedBackBuckets*m.width
}

// clear gives up what was merged so far, and says how many spans that were.
func (m *Merged) clear() (spans uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	spans = m.held.Load()
	m.reset()
	return spans
}

// reset gives all memory back.
func (m *Merged) reset() {
	m.numbers, m.rows, m.mappings = map[mergedKey]int{}, nil, m.mappings[:1]
	m.memory.Release(m.chunks)
	m.bins, m.chunks = 0, 0
	m.held.Store(0)
}

func (m *Merged) part(at int) Part {
	row := &m.rows[at]
	return Part{Key: row.key, Mapping: row.mapping, Bucket: row.bucket, merged: m, row: int32(at)}
}
