package aggregate

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/sketch"
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
