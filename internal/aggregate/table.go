package aggregate

import (
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/sketch"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Table is the aggregates of one drainer for one cycle: rows in the order of
// their first span, found by (bucket, key id) through a dense index. Its
// drainer is the only one that touches it until the seal, and the flush the
// only one after it.
type Table struct {
	oldest   int64 // start of the oldest bucket that this cycle writes
	width    int64 // of a bucket
	rows     []Aggregate
	ok       []sketch.Store // by row, the sketch of its spans without an error
	failed   []sketch.Store // error sketches, in the order of their first error
	weighted []Counts       // what rows count in floats, in the order of their first need
	index    []uint32       // by bucket of the window and key id; row number plus one, 0 for none
	keys     int            // key ids that the index has room for in each bucket
	pages    sketch.Arena

	held atomic.Uint64 // snapshots in the rows, for the books; written by the one writer
}

// NewTable returns a table for key ids below keys and buckets of the given
// width. Open it before use.
func NewTable(keys int, width time.Duration, sketches *sketch.Memory) *Table {
	return &Table{
		keys: keys, width: int64(width), index: make([]uint32, keys*windowBuckets),
		pages: sketch.NewArena(sketches),
	}
}

// Open sets the window: the bucket before the one that opened falls into, that
// one, and the next.
func (t *Table) Open(opened time.Time) { t.oldest = oldestBucket(opened, t.width) }

// Len is the number of rows. They are valid until the table is reset.
func (t *Table) Len() int { return len(t.rows) }

// Part is a row's.
func (t *Table) Part(at int) Part {
	row := &t.rows[at]
	return Part{Key: row.Key, Bucket: t.oldest + int64(row.bucket)*t.width, at: int32(at), from: t}
}

func (t *Table) counts(at int) Counts { return t.rows[at].counts(t.weighted) }

func (t *Table) readOK(at int, to *sketch.Sketch) {
	t.ok[at].Read(&t.pages, to)
}

func (t *Table) readErrors(at int, to *sketch.Sketch) {
	if failed := t.rows[at].failed; failed != 0 {
		t.failed[failed-1].Read(&t.pages, to)
	}
}

// Add takes in a snapshot.
func (t *Table) Add(s *Slot) {
	row, at := t.row(s)
	if s.Weight != 1 {
		t.floats(row).count(s)
	} else {
		row.spans[s.Flags&span.KnownFlags]++
		if row.nanos+s.Duration < s.Duration {
			t.floats(row).Duration += float64(row.nanos)
			row.nanos = 0
		}
		row.nanos += s.Duration
	}
	if s.Flags&span.Error != 0 {
		t.errors(row).Add(&t.pages, s.Duration)
	} else {
		t.ok[at].Add(&t.pages, s.Duration)
	}
}

// row finds the row of a snapshot, or opens it.
func (t *Table) row(s *Slot) (row *Aggregate, at int) {
	number := &t.index[int(s.bucket)*t.keys+int(s.Key)]
	if *number == 0 {
		*number = t.open(s)
	}
	at = int(*number) - 1
	return &t.rows[at], at
}

// open appends a row and returns its number plus one.
func (t *Table) open(s *Slot) uint32 {
	t.rows = extend(t.rows, len(t.index))
	t.rows[len(t.rows)-1] = Aggregate{Key: s.Key, bucket: uint32(s.bucket)}
	t.ok = extend(t.ok, len(t.index))
	t.ok[len(t.ok)-1] = sketch.Store{}
	return uint32(len(t.rows))
}

// errors is the row's error sketch, there from its first error on.
func (t *Table) errors(row *Aggregate) *sketch.Store {
	if row.failed == 0 {
		t.failed = extend(t.failed, len(t.index))
		t.failed[len(t.failed)-1] = sketch.Store{}
		row.failed = uint32(len(t.failed))
	}
	return &t.failed[row.failed-1]
}

// floats is what of the row is counted in floats.
func (t *Table) floats(row *Aggregate) *Counts {
	if row.weighted == 0 {
		t.weighted = extend(t.weighted, len(t.index))
		t.weighted[len(t.weighted)-1] = Counts{}
		row.weighted = uint32(len(t.weighted))
	}
	return &t.weighted[row.weighted-1]
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
	t.rows, t.ok, t.failed, t.weighted = t.rows[:0], t.ok[:0], t.failed[:0], t.weighted[:0]
	clear(t.index)
	t.pages.Reset()
	t.held.Store(0)
}
