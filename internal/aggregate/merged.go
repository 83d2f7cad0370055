package aggregate

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Merged is the groups of one cycle: rows found by key, bucket and mapping. No drainer
// has a part in it. Publishers that are inside the cycle add to it under mu, some hundred
// groups a tracer and 10 seconds; after the seal it belongs to the flush.
type Merged struct {
	mu sync.Mutex
	mergedBuckets
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
		mergedBuckets: mergedBuckets{width: int64(config.BucketWidth)},
		maxChunks:     config.SketchBytes / mergedShare / sketch.ChunkBytes, memory: memory,
		numbers: map[mergedKey]int{}, mappings: []sketch.Mapping{sketch.OwnMapping}, spans: spans,
	}
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

// Which bucket of a tracer can be merged, and where it goes, so that the agent makes the
// same of it.
//
// The agent keeps what tracers have counted in slots of two seconds, by the bucket's
// start. A start before its oldest slot, which is between 17 and 20 s old, goes into that
// one; a start after now goes into the slot of now. So a start may be replaced by any
// other of its slot, and a bucket may reach the agent later as long as it is not 17 s old
// by then.
//
//   - A bucket of ours, a whole ten seconds of the wall clock, is taken for a minute.
//     Its tracer sends it when it is 20 s old, so the agent would have put it into its
//     oldest slot, and still does that much later.
//   - A bucket that began at any other time is taken while it is mergedMaxAge old at most:
//     it reaches the agent a flush interval later. dd-trace-java's begin when they are
//     sent. It goes to the start of its slot, where it meets what other processes have
//     sent, as it would have at the agent.
const (
	agentSlot    = int64(2 * time.Second)
	mergedMaxAge = int64(5 * time.Second)
	// mergedBackBuckets is how many buckets before a cycle's own are taken.
	mergedBackBuckets = 6
)

// mergedBuckets are those that a cycle takes.
type mergedBuckets struct {
	width  int64 // of a bucket
	oldest int64 // start of the oldest bucket of ours that is taken
}

// begin makes them those of a cycle that begins then.
func (m *mergedBuckets) begin(now time.Time) {
	m.oldest = now.UnixNano() - now.UnixNano()%m.width - mergedBackBuckets*m.width
}

// bucketOf is the start under which a tracer's bucket is kept.
func (m *mergedBuckets) bucketOf(start, now int64) (bucket int64, ok bool) {
	switch {
	case start > now:
		return 0, false
	case start%m.width == 0:
		return start, start >= m.oldest
	default:
		return start - start%agentSlot, now-start <= mergedMaxAge
	}
}

// Group is what a tracer has counted itself of one key in one bucket.
type Group struct {
	Key     span.Key       // its labels may be parts of a buffer
	Bucket  int64          // as its tracer began it, nanoseconds since the Unix epoch
	Mapping sketch.Mapping // of its bins
	Counts
	OK, Errors sketch.Bins
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

// Add admits the key of a group that there is room for, and adds what was counted.
func (m Merging) Add(origin registry.OriginID, g *Group) registry.LabelSet {
	mapping := slices.Index(m.mappings, g.Mapping)
	if mapping < 0 {
		panic("BUG: a group is added that no room was reserved for")
	}
	admission := m.cycle.Admit(origin, &g.Key)
	if g.Spans > 1 {
		admission = m.cycle.Admit(origin, &g.Key)
	}
	bucket, _ := m.bucketOf(g.Bucket, g.Bucket)
	row := m.row(mergedKey{admission.ID, sketch.MappingID(mapping), bucket})
	m.bins += row.ok.add(&g.OK) + row.errors.add(&g.Errors)
	row.Add(&g.Counts) // last: the books count what is in the rows
	m.held.Add(g.Spans)
	m.spans.Add(g.Spans)
	return admission.Collapsed
}
