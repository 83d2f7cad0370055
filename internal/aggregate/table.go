package aggregate

import (
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/sketch"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Table is what one drainer counts in one cycle: rows in the order of their first span,
// found by bucket and key id through a dense index. Its drainer is the only one that
// touches it until the seal, and the flush the only one after it.
type Table struct {
	oldest int64 // start of the oldest bucket that this cycle writes
	width  int64 // of a bucket
	keys   int   // key ids that the index has room for in each bucket
	index  []uint32
	rows   []row
	failed []failed     // in the order of the rows' first errors
	pages  sketch.Arena // of all stores

	held atomic.Uint64 // snapshots in the rows, for the books; written by the one writer
}

// row is one key in one bucket. It holds no pointer.
type row struct {
	Counts
	key    registry.KeyID
	bucket uint32       // in the window
	failed uint32       // number of what is kept of its errors plus one, 0 until the first
	ok     sketch.Store // of its spans without an error
}

// failed is what is kept of a row's spans with an error.
type failed struct {
	durations sketch.Store
	duration  float64 // theirs of the row's Counts.Duration
}

// NewTable returns a table for key ids below keys and buckets of the given width.
func NewTable(keys int, width time.Duration, sketches *sketch.Memory) *Table {
	return &Table{
		keys: keys, width: int64(width), index: make([]uint32, keys*windowBuckets),
		pages: sketch.NewArena(sketches),
	}
}

// Begin makes it a table of a cycle that starts then, before the first Add.
func (t *Table) Begin(started time.Time) { t.oldest = oldestBucket(started, t.width) }

// Add counts a snapshot.
func (t *Table) Add(s *Slot) {
	number := &t.index[int(s.bucket)*t.keys+int(s.Key)] // of the row plus one, 0 where there is none
	if *number == 0 {
		t.rows = extend(t.rows, row{key: s.Key, bucket: uint32(s.bucket)}, len(t.index))
		*number = uint32(len(t.rows))
	}
	r := &t.rows[*number-1]
	store := &r.ok
	r.Spans++
	r.Hits += s.Weight
	r.Duration += float64(s.Duration) * s.Weight
	if s.Flags&span.TopLevel != 0 {
		r.TopLevel += s.Weight
	}
	if s.Flags&span.Error != 0 {
		r.Errors += s.Weight
		failed := t.failedOf(r)
		failed.duration += float64(s.Duration) * s.Weight
		store = &failed.durations
	}
	store.Add(&t.pages, s.Duration)
}

// failedOf is what is kept of the row's errors, there from the first on.
func (t *Table) failedOf(r *row) *failed {
	if r.failed == 0 {
		t.failed = extend(t.failed, failed{}, len(t.index))
		r.failed = uint32(len(t.failed))
	}
	return &t.failed[r.failed-1]
}

// extend appends an element. It doubles the memory when that is full, but never beyond
// the most that can be needed, so that TableBytes is exact.
func extend[T any](s []T, element T, most int) []T {
	if len(s) == cap(s) {
		s = append(make([]T, 0, min(max(64, 2*cap(s)), most)), s...)
	}
	return append(s, element)
}

// Len is the number of rows. They are valid until the table is reset.
func (t *Table) Len() int { return len(t.rows) }

// Reset empties the table. It keeps its memory for the next cycle, but gives the pages of
// its sketches back.
func (t *Table) Reset() {
	t.rows, t.failed = t.rows[:0], t.failed[:0]
	clear(t.index)
	t.pages.Reset()
	t.held.Store(0)
}
