package aggregate

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"github.com/spanstatsd/spanstatsd/internal/registry"
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

// Counts is what is counted of a key besides its durations' distribution.
//
// The weighted ones are float64, as the agent's are: exact for whole numbers up to 2^53,
// fractional where a weight is, and unable to wrap around. A number that is larger than a
// payload can say stays at the largest that it can say.
type Counts struct {
	Spans    uint64  // snapshots, unweighted: the unit of the books
	Hits     float64 // weighted, as are the three below
	Errors   float64
	TopLevel float64
	Duration float64 // nanoseconds, not truncated
}

// Add adds what was counted of the same key elsewhere.
func (c *Counts) Add(other *Counts) {
	c.Spans += other.Spans
	c.Hits += other.Hits
	c.Errors += other.Errors
	c.TopLevel += other.TopLevel
	c.Duration += other.Duration
}

// distribution is the spans of a merged row by bin. Unlike a drainer's store it never
// collapses: it may be of any mapping.
type distribution struct {
	zeros uint64
	bins  []sketch.Bin // lowest first, each once
}

// add adds bins and returns how many the distribution did not have.
func (d *distribution) add(b *sketch.Bins) (more int) {
	d.zeros += b.Zeros
	for _, bin := range b.List {
		at, found := slices.BinarySearchFunc(d.bins, bin.Index, func(b sketch.Bin, index uint16) int {
			return cmp.Compare(b.Index, index)
		})
		if found {
			d.bins[at].Spans += bin.Spans
			continue
		}
		d.bins = slices.Insert(d.bins, at, bin)
		more++
	}
	return more
}

func (d *distribution) mean(mapping sketch.Mapping) float64 {
	return (&sketch.Bins{Zeros: d.zeros, List: d.bins}).Mean(mapping)
}

func (d *distribution) read(to sketch.Sum, mapping sketch.Mapping) {
	to.AddZeros(d.zeros)
	to.AddBins(mapping, d.bins)
}

// Part is what one table has counted of a key in one bucket, or what was merged of it
// in one mapping.
type Part struct {
	Key     registry.KeyID
	Mapping sketch.MappingID
	Bucket  int64 // its start, nanoseconds since the Unix epoch

	table  *Table // or
	merged *Merged
	row    int32
}

// Part is a row's.
func (t *Table) Part(at int) Part {
	r := &t.rows[at]
	return Part{Key: r.key, Bucket: t.oldest + int64(r.bucket)*t.width, table: t, row: int32(at)}
}

func (m *Merged) part(at int) Part {
	row := &m.rows[at]
	return Part{Key: row.key, Mapping: row.mapping, Bucket: row.bucket, merged: m, row: int32(at)}
}

// Counts is all but the sketches.
func (p *Part) Counts() Counts {
	if p.table != nil {
		return p.table.rows[p.row].Counts
	}
	return p.merged.rows[p.row].Counts
}

// ReadOK adds the distribution of the part's spans without an error to a histogram, or to a
// sketch, which holds nothing of another mapping.
func (p *Part) ReadOK(to sketch.Sum) {
	if t := p.table; t != nil {
		t.rows[p.row].ok.Read(&t.pages, to)
	} else {
		p.merged.rows[p.row].ok.read(to, p.merged.mappings[p.Mapping])
	}
}

// ReadErrors does the same for its spans with an error.
func (p *Part) ReadErrors(to sketch.Sum) {
	if t := p.table; t == nil {
		p.merged.rows[p.row].errors.read(to, p.merged.mappings[p.Mapping])
	} else if failed := t.rows[p.row].failed; failed != 0 {
		t.failed[failed-1].durations.Read(&t.pages, to)
	}
}

// ErrorDuration is what of Counts.Duration spans with an error took. Tracers that count
// themselves do not tell it; of theirs it is what the bins of those spans stand for.
func (p *Part) ErrorDuration() float64 {
	if t := p.table; t == nil {
		return p.merged.rows[p.row].errorDuration(p.merged.mappings[p.Mapping])
	} else if failed := t.rows[p.row].failed; failed != 0 {
		return t.failed[failed-1].duration
	}
	return 0
}
