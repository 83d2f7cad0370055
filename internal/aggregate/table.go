package aggregate

import (
	"sync/atomic"
	"time"
)

// Table is the aggregates of one drainer for one cycle: rows in the order of
// their first span, found by (bucket, key id) through a dense index. Its
// drainer is the only one that touches it until the seal, and the flush the
// only one after it.
type Table struct {
	oldest int64 // start of the oldest bucket that this cycle writes
	width  int64 // of a bucket
	rows   []Aggregate
	index  []int32 // by bucket slot and key id; row number plus one, 0 for none
	keys   int     // key ids a bucket slot of the index has room for

	held atomic.Uint64 // snapshots in the rows, for the books; written by the one writer
}

// NewTable returns a table for key ids below keys and buckets of the given
// width. Open it before use.
func NewTable(keys int, width time.Duration) *Table {
	return &Table{keys: keys, width: int64(width), index: make([]int32, keys*windowBuckets)}
}

// Open sets the window: the bucket before the one that opened falls into, that
// one, and the next.
func (t *Table) Open(opened time.Time) {
	now := opened.UnixNano()
	t.oldest = now - now%t.width - t.width
}

// Rows are the aggregates, valid until the table is reset.
func (t *Table) Rows() []Aggregate { return t.rows }

// Clamp is where a span's end time lies in regard to the window.
type Clamp int8

const (
	Late   Clamp = -1 // raised into the oldest bucket
	InTime Clamp = 0
	Early  Clamp = 1 // lowered into the bucket of now
)

// Row returns the aggregate of key in the bucket of end, opening it if this is
// its first span, and says whether the end time had to be clamped. A span can't
// have ended after now.
func (t *Table) Row(key KeyID, end, now int64) (*Aggregate, Clamp) {
	clamp := InTime
	slot := 1
	if offset := end - t.oldest; offset < t.width || offset >= 2*t.width {
		slot, clamp = t.clamp(end, now)
	}
	at := &t.index[slot*t.keys+int(key)]
	if *at == 0 {
		t.open(t.oldest+int64(slot)*t.width, key)
		*at = int32(len(t.rows))
	}
	return &t.rows[*at-1], clamp
}

// clamp finds the bucket of an end time outside the cycle's own bucket.
func (t *Table) clamp(end, now int64) (slot int, clamp Clamp) {
	if end < t.oldest {
		return 0, Late
	}
	// The wall clock may have stepped back below the window since the cycle
	// opened; then now has no bucket here, and the cycle's own is the nearest.
	latest := max(now, t.oldest+t.width)
	if end > latest {
		end, clamp = latest, Early
	}
	return int(min((end-t.oldest)/t.width, windowBuckets-1)), clamp
}

// open appends a row, taking over the sketches that an earlier cycle left there.
func (t *Table) open(start int64, key KeyID) {
	if len(t.rows) < cap(t.rows) {
		t.rows = t.rows[:len(t.rows)+1]
	} else {
		t.rows = append(t.rows, Aggregate{})
	}
	row := &t.rows[len(t.rows)-1]
	ok, err := row.OK, row.spareErr()
	if ok == nil {
		ok = NewSketch()
	}
	*row = Aggregate{Key: key, Bucket: start, OK: ok, spare: err}
}

// Reset empties the table and keeps its memory for the next cycle.
func (t *Table) Reset() {
	for i := range t.rows {
		row := &t.rows[i]
		row.OK.Reset()
		if spare := row.spareErr(); spare != nil {
			spare.Reset()
			row.Err, row.spare = nil, spare
		}
	}
	t.rows = t.rows[:0]
	clear(t.index)
	t.held.Store(0)
}

// windowBuckets is how many buckets one cycle can write: the one before the
// cycle's own, its own, and the next, which a span can reach when it ends
// between a bucket's boundary and the seal that follows it.
const windowBuckets = 3
