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

// Merged contains the groups of one cycle: rows identified by key, bucket and mapping. Publishers
// inside the cycle add groups under mu, some hundred per tracer every 10 seconds; drainers do not
// use it. After the seal it belongs to the exporters.
type Merged struct {
	mu sync.Mutex
	mergedBuckets
	maxChunks int            // maximum of chunks
	memory    *sketch.Memory // charged for all rows and their bins

	indexes  map[mergedKey]int // indexes of rows
	rows     []mergedRow
	mappings []sketch.Mapping // by MappingID
	binCount int              // number of bins in all rows
	chunks   int              // number of chunks that are reserved in memory

	pending atomic.Uint64  // number of spans in the rows, until the seal
	spans   *atomic.Uint64 // number of spans that were added in all cycles
}

type mergedKey struct {
	key     registry.KeyID
	mapping sketch.MappingID
	bucket  int64
}

type mergedRow struct {
	mergedKey
	Counts
	okDurations, errorDurations distribution
}

const (
	// The groups of one cycle can take 1/mergedShare of the sketch memory, so that two cycles leave
	// half of it to the drainers.
	mergedShare = 4
	// mergedBinBytes is the memory of a bin in a list that has just grown.
	mergedBinBytes = 32
	// mergedRowBytes is the memory of a row in such a list, and of its map entry.
	mergedRowBytes = 2*int(unsafe.Sizeof(mergedRow{})) + 4*int(unsafe.Sizeof(mergedKey{})+unsafe.Sizeof(0))
)

func newMerged(config *Config, memory *sketch.Memory, spans *atomic.Uint64) *Merged {
	return &Merged{
		mergedBuckets: mergedBuckets{width: int64(config.BucketWidth)},
		maxChunks:     config.SketchBytes / mergedShare / sketch.ChunkBytes, memory: memory,
		indexes: map[mergedKey]int{}, mappings: []sketch.Mapping{sketch.AgentMapping}, spans: spans,
	}
}

// reserveMemory ensures that enough memory is reserved for the given total numbers of rows and bins, which
// include the existing ones. If that would exceed the memory limit, it returns false and reserves
// nothing.
func (m *Merged) reserveMemory(totalRows, totalBins int) bool {
	totalBytes := totalRows*mergedRowBytes + totalBins*mergedBinBytes
	totalChunks := (totalBytes + sketch.ChunkBytes - 1) / sketch.ChunkBytes // rounded up
	if totalChunks <= m.chunks {
		return true
	}
	if totalChunks > m.maxChunks {
		return false
	}
	missingChunks := totalChunks - m.chunks
	if !m.memory.Reserve(missingChunks) {
		return false
	}
	m.chunks = totalChunks
	return true
}

// row returns the row of a key, and adds it if necessary.
func (m *Merged) row(key mergedKey) *mergedRow {
	index, known := m.indexes[key]
	if !known {
		index = len(m.rows)
		m.indexes[key] = index
		m.rows = append(m.rows, mergedRow{mergedKey: key})
	}
	return &m.rows[index]
}

// errorDuration returns the total duration of the spans with an error, in nanoseconds. Tracers send
// only the total duration of all spans of a key. So the result is an estimate from the bins, unless all spans have an
// error.
func (r *mergedRow) errorDuration(mapping sketch.Mapping) float64 {
	if r.Errors >= r.Hits {
		return r.Duration
	}
	return min(r.Errors*r.errorDurations.mean(mapping), r.Duration)
}

// clear discards all groups and returns the number of their spans.
func (m *Merged) clear() (spans uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	spans = m.pending.Load()
	m.reset()
	return spans
}

// reset discards all groups and releases their memory.
func (m *Merged) reset() {
	m.indexes = map[mergedKey]int{}
	m.rows = nil
	m.mappings = m.mappings[:1] // the own one
	m.memory.Release(m.chunks)
	m.binCount, m.chunks = 0, 0
	m.pending.Store(0)
}

// Limits for the buckets of tracers that can be merged without changing the agent's result.
//
// The agent adds groups to slots of two seconds, by the start of their bucket. If the start is before
// the oldest slot, which is between 17 and 20 s old, the group goes into that slot; if it is in the
// future, into the current one. So a start can be replaced by any other in its slot, and a bucket can
// reach the agent later, as long as it is less than 17 s old by then.
//
//   - A bucket aligned to the daemon's own (ten seconds of the wall clock) is accepted for a minute. Its
//     tracer sends it when it is 20 s old, so the agent would put it into the oldest slot in any case.
//   - A bucket that starts at any other time is accepted until it is unalignedMaxAge old, because it reaches
//     the agent one flush interval later. dd-trace-java starts such buckets when it sends them. They are
//     moved to the start of their slot, where the agent would also merge them with other processes'.
const (
	agentSlot       = int64(2 * time.Second)
	unalignedMaxAge = int64(5 * time.Second)
	// mergedBackBuckets is the number of accepted buckets before a cycle's own.
	mergedBackBuckets = 6
)

// mergedBuckets decides which buckets of tracers a cycle accepts.
type mergedBuckets struct {
	width         int64 // width of a bucket
	oldestAligned int64 // start of the oldest aligned bucket that is accepted
}

// begin sets the buckets for a cycle that begins now.
func (m *mergedBuckets) begin(now time.Time) {
	m.oldestAligned = bucketStart(now, m.width) - mergedBackBuckets*m.width
}

// acceptsStart reports whether spans of a time bucket that begins at start can still be counted. It returns false if
// the bucket begins after now, or is too old. A bucket that is aligned with those of the daemon can be older than
// another one; the comment on agentSlot gives the reasons. start and now are in nanoseconds since the Unix epoch.
func (m *mergedBuckets) acceptsStart(start, now int64) bool {
	isInFuture := start > now
	if isInFuture {
		return false
	}
	if m.isAligned(start) {
		return start >= m.oldestAligned
	}
	age := now - start
	return age <= unalignedMaxAge
}

// rounded returns the start of the time bucket in which a bucket of a tracer is counted. This is start
// itself if a bucket of the daemon starts then. Otherwise start is rounded down to a multiple of two
// seconds, as in the agent.
func (m *mergedBuckets) rounded(start int64) int64 {
	if m.isAligned(start) {
		return start
	}
	return start - start%agentSlot
}

// isAligned reports whether one of the daemon's own buckets begins at the given time.
func (m *mergedBuckets) isAligned(start int64) bool { return start%m.width == 0 }

// Group is the statistics that a tracer has counted for one key in one bucket.
type Group struct {
	Key     span.Key       // its labels can point into a buffer
	Bucket  int64          // start as sent by the tracer, nanoseconds since the Unix epoch
	Mapping sketch.Mapping // mapping of the bins
	Counts
	OK, Errors sketch.Bins
}

// Why groups are not merged.
var (
	ErrOtherTime    = errors.New("merge groups: their bucket width is not supported")
	ErrMappings     = errors.New("merge groups: too many different sketch mappings in this interval")
	ErrNoMergedRoom = errors.New("merge groups: the maximum number of aggregates is reached")
)

// GroupWriter adds groups to the cycle that a publisher has entered. It has exclusive access until End.
type GroupWriter struct {
	cycle  *Cycle
	merged *Merged // merged statistics of the cycle
}

// LockGroups waits for exclusive access to the groups of the cycle. The caller must call End.
func (c *Cycle) LockGroups() GroupWriter {
	c.merged.mu.Lock()
	return GroupWriter{cycle: c, merged: c.merged}
}

// End releases the access.
func (w GroupWriter) End() { w.merged.mu.Unlock() }

// Reserve reserves memory for groups that Add will add. A group is the statistics of a key that a tracer has counted.
// width is the width of the tracer's time buckets, in nanoseconds. Reserve returns an error, and reserves nothing, if the
// daemon cannot count these time buckets, or if the groups exceed a limit of the cycle.
func (w GroupWriter) Reserve(groups []Group, width uint64, now time.Time) error {
	m := w.merged
	if width != uint64(m.width) || !m.acceptsStarts(groups, now) {
		return ErrOtherTime
	}
	mappings := m.mappingsWith(groups)
	if len(mappings) > sketch.MaxMappings {
		return ErrMappings
	}
	totalRows := len(m.rows) + len(groups)
	totalBins := m.binCount + countBins(groups)
	if !m.reserveMemory(totalRows, totalBins) {
		return ErrNoMergedRoom
	}
	m.mappings = mappings // only now: Reserve changes nothing if it fails
	return nil
}

// mappingsWith returns the mappings of the cycle, followed by those of the groups that it does not have yet. If there
// are more than sketch.MaxMappings, it returns only one more. It does not change m.mappings, but the result can share
// its memory.
func (m *Merged) mappingsWith(groups []Group) []sketch.Mapping {
	mappings := m.mappings
	for i := range groups {
		mapping := groups[i].Mapping
		if slices.Contains(mappings, mapping) {
			continue
		}
		mappings = append(mappings, mapping)
		if len(mappings) > sketch.MaxMappings {
			break
		}
	}
	return mappings
}

// countBins returns the number of bins in all groups.
func countBins(groups []Group) (bins int) {
	for i := range groups {
		bins += len(groups[i].OK.List) + len(groups[i].Errors.List)
	}
	return bins
}

// acceptsStarts reports whether spans of the time buckets of all groups can still be counted.
func (m *mergedBuckets) acceptsStarts(groups []Group, now time.Time) bool {
	for i := range groups {
		if !m.acceptsStart(groups[i].Bucket, now.UnixNano()) {
			return false
		}
	}
	return true
}

// Add adds the counts of a group, which a tracer has counted for one key. The caller must have passed the group to
// Reserve. A label with too many different values is replaced. Add returns the labels of the key that were replaced.
func (w GroupWriter) Add(origin registry.OriginID, g *Group) registry.LabelSet {
	m := w.merged
	mapping := slices.Index(m.mappings, g.Mapping)
	if mapping < 0 {
		panic("BUG: a group is added that no room was reserved for")
	}
	admission := w.admit(origin, g)
	row := m.row(mergedKey{
		key: admission.ID, mapping: sketch.MappingID(mapping), bucket: m.rounded(g.Bucket),
	})
	row.Add(&g.Counts)
	newBins := row.okDurations.add(&g.OK) + row.errorDurations.add(&g.Errors)
	m.binCount += newBins
	m.pending.Add(g.Spans) // until the cycle is sealed
	m.spans.Add(g.Spans)   // in total
	return admission.Collapsed
}

// admit returns the ID of the key of a group. If the group has several spans, admit registers the key twice: the registry
// prefers keys that are used at least twice.
func (w GroupWriter) admit(origin registry.OriginID, g *Group) registry.Admission {
	admission := w.cycle.Admit(origin, &g.Key)
	if g.Spans > 1 {
		admission = w.cycle.Admit(origin, &g.Key)
	}
	return admission
}
