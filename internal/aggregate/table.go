package aggregate

import (
	"math"
	"sync/atomic"
	"time"

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
	ok       []store  // by row, the sketch of its spans without an error
	failed   []store  // error sketches, in the order of their first error
	weighted []Counts // what rows count in floats, in the order of their first need
	index    []int32  // by bucket of the window and key id; row number plus one, 0 for none
	keys     int      // key ids that the index has room for in each bucket
	pages    arena
	weight   float64 // of the next span that is weighted

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
func (t *Table) Open(opened time.Time) { t.oldest = oldestBucket(opened, t.width) }

// Len is the number of rows. They are valid until the table is reset.
func (t *Table) Len() int { return len(t.rows) }

// Part is a row's.
func (t *Table) Part(at int) Part {
	row := &t.rows[at]
	return Part{Key: row.Key, Bucket: t.oldest + int64(row.bucket)*t.width, at: int32(at), from: t}
}

func (t *Table) counts(at int) Counts { return t.rows[at].counts(t.weighted) }

func (t *Table) readOK(at int, to *Sketch) {
	for _, duration := range t.rows[at].recent[:t.rows[at].recents] {
		to.count(duration.bin(), 1)
	}
	t.ok[at].read(&t.pages, to)
}

func (t *Table) readErrors(at int, to *Sketch) {
	if failed := t.rows[at].failed; failed != 0 {
		t.failed[failed-1].read(&t.pages, to)
	}
}

// count takes in slots that are of one cycle and in no way unusual, up to the first that
// is not, and returns how many. It is the hot path: what it can't do in a few steps it
// leaves to Add.
func (t *Table) count(slots []Slot) int {
	own := slots[0].Facts & (1 << cycleShift)
	index, rows, keys := t.index, t.rows, t.keys
	for i := range slots {
		s := &slots[i]
		facts := s.Facts ^ own
		if facts&(unusual|1<<cycleShift) != 0 {
			return i
		}
		if facts&Facts(span.Error) == 0 {
			if at := index[facts.bucket()*keys+int(s.Key)]; at != 0 {
				row := &rows[at-1]
				// More only where it is neither 0 nor makes the sum wrap around.
				if sum := row.nanos + s.Value; sum > row.nanos {
					row.nanos = sum
					row.spans[facts&factsFlags]++
					row.recent[row.recents%recentSpans] = truncatedOf(s.Value)
					if row.recents++; row.recents == recentSpans {
						t.sketch(row, int(at-1))
					}
					continue
				}
			}
		}
		t.Add(s)
		rows = t.rows
	}
	return len(slots)
}

// Add takes in any one slot.
func (t *Table) Add(s *Slot) {
	switch {
	case s.Facts&noteEnd != 0:
		return
	case s.Facts&noteWeight != 0:
		t.weight = math.Float64frombits(s.Value)
		return
	}
	row, at := t.row(s)
	if s.Facts&factWeighted != 0 {
		t.floats(row).count(s.Facts, s.Value, t.weight)
	} else {
		row.spans[s.Facts&factsFlags]++
		if row.nanos+s.Value < s.Value {
			t.floats(row).Duration += float64(row.nanos)
			row.nanos = 0
		}
		row.nanos += s.Value
	}
	if s.Facts&Facts(span.Error) != 0 {
		t.errors(row).add(&t.pages, s.Value)
	} else {
		t.ok[at].add(&t.pages, s.Value)
	}
}

// row finds the row of a snapshot, or opens it.
func (t *Table) row(s *Slot) (row *Aggregate, at int) {
	number := &t.index[s.Facts.bucket()*t.keys+int(s.Key)]
	if *number == 0 {
		*number = t.open(s.Facts.bucket(), s.Key)
	}
	at = int(*number) - 1
	return &t.rows[at], at
}

// open appends a row and returns its number plus one.
func (t *Table) open(bucket int, key KeyID) int32 {
	t.rows = extend(t.rows, len(t.index))
	t.rows[len(t.rows)-1] = Aggregate{Key: key, bucket: uint32(bucket)}
	t.ok = extend(t.ok, len(t.index))
	t.ok[len(t.ok)-1] = store{}
	return int32(len(t.rows))
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
	t.pages.reset()
	t.held.Store(0)
}
