package aggregate

import (
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Table is the aggregates of one drainer for one cycle: rows in the order of
// their first span, found by (bucket, key id) through a dense index. Its
// drainer is the only one that touches it until the seal, and the flush the
// only one after it.
type Table struct {
	oldest int64 // start of the oldest bucket that this cycle writes
	width  int64 // of a bucket
	rows   []Aggregate
	failed []store // error sketches, in the order of their first error
	index  []int32 // by bucket of the window and key id; row number plus one, 0 for none
	keys   int     // key ids that the index has room for in each bucket
	pages  arena

	held atomic.Uint64 // snapshots in the rows, for the books; written by the one writer
}

// NewTable returns a table for key ids below keys and buckets of the given
// width. Open it before use.
func NewTable(keys int, width time.Duration, sketches *SketchMemory) *Table {
	return &Table{
		keys: keys, width: int64(width), index: make([]int32, keys*windowBuckets),
		pages: arena{memory: sketches},
	}
}

// Open sets the window: the bucket before the one that opened falls into, that
// one, and the next.
func (t *Table) Open(opened time.Time) {
	now := opened.UnixNano()
	t.oldest = now - now%t.width - t.width
}

// Rows are the aggregates, valid until the table is reset.
func (t *Table) Rows() []Aggregate { return t.rows }

func (t *Table) readOK(at int, to *Sketch) { t.rows[at].ok.read(&t.pages, to) }

func (t *Table) readErrors(at int, to *Sketch) {
	if failed := t.rows[at].failed; failed != 0 {
		t.failed[failed-1].read(&t.pages, to)
	}
}

// Clamp is where a span's end time lies in regard to the window.
type Clamp int8

const (
	Late   Clamp = -1 // raised into the oldest bucket
	InTime Clamp = 0
	Early  Clamp = 1 // lowered into the bucket of now
)

// Add counts one snapshot in the bucket of its end, and says whether the end
// time had to be clamped. A span can't have ended after now.
func (t *Table) Add(s *Slot, now int64) Clamp {
	bucket, clamp := 1, InTime
	if offset := s.End - t.oldest; offset < t.width || offset >= 2*t.width {
		bucket, clamp = t.clamp(s.End, now)
	}
	at := &t.index[bucket*t.keys+int(s.Key)]
	if *at == 0 {
		*at = t.open(bucket, s.Key)
	}
	row := &t.rows[*at-1]
	row.count(s)
	if s.Flags&span.Error == 0 {
		row.ok.add(&t.pages, s.Duration)
	} else {
		t.errors(row).add(&t.pages, s.Duration)
	}
	return clamp
}

// open appends a row and returns its number plus one.
func (t *Table) open(bucket int, key KeyID) int32 {
	t.rows = extend(t.rows, len(t.index))
	t.rows[len(t.rows)-1] = Aggregate{Row: Row{Key: key, Bucket: t.oldest + int64(bucket)*t.width}}
	return int32(len(t.rows))
}

// clamp finds the bucket of an end time outside the cycle's own bucket.
func (t *Table) clamp(end, now int64) (bucket int, clamp Clamp) {
	if end < t.oldest {
		return 0, Late
	}
	// The wall clock may have stepped back below the window since the cycle
	// opened; then now has no bucket here, and the cycle's own is the nearest.
	own, latest := (end-t.oldest)/t.width, (max(now, t.oldest+t.width)-t.oldest)/t.width
	if own > latest {
		own, clamp = latest, Early
	}
	return int(min(own, windowBuckets-1)), clamp
}

// errors is the row's error sketch, there from its first error on.
func (t *Table) errors(row *Aggregate) *store {
	if row.failed == 0 {
		t.failed = extend(t.failed, len(t.index))
		t.failed[len(t.failed)-1] = store{}
		row.failed = uint32(len(t.failed))
	}
	return &t.failed[row.failed-1]
}

// extend makes a slice one longer. It doubles its memory when that is full, but
// never beyond the most that can be needed, so that TableBytes is exact.
func extend[T any](s []T, most int) []T {
	if len(s) == cap(s) {
		s = append(make([]T, 0, min(max(64, 2*cap(s)), most)), s...)
	}
	return s[:len(s)+1]
}

// Reset empties the table and keeps its memory for the next cycle, but that of
// its sketches' pages, which it gives back.
func (t *Table) Reset() {
	t.rows, t.failed = t.rows[:0], t.failed[:0]
	clear(t.index)
	t.pages.reset()
	t.held.Store(0)
}

// windowBuckets is how many buckets one cycle can write: the one before the
// cycle's own, its own, and the next, which a span can reach when it ends
// between a bucket's boundary and the seal that follows it.
const windowBuckets = 3
