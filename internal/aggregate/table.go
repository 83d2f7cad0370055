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

// Table contains the counts of one drainer, a goroutine that aggregates spans, in one cycle. It has one
// row per key and time bucket, in the order of their first spans. Until the cycle ends, only the drainer
// uses the table, and afterwards only the exporters.
type Table struct {
	oldest int64 // start of the oldest bucket of the cycle
	width  int64 // width of a bucket
	keys   int   // number of key IDs per bucket in the index
	index  []uint32
	rows   []row
	errors []errorPart  // indexes of rows, in the order of their first errors
	pages  sketch.Arena // pages of all stores

	pending       atomic.Uint64 // snapshots in the rows, for the accounting; one writer
	pendingValues atomic.Uint64 // values of measures in the rows; one writer
}

// row is one key in one bucket. It has no pointers.
type row struct {
	Counts
	key               registry.KeyID
	bucket            uint32       // index in the window
	errorIndexPlusOne uint32       // index in Table.errors, plus one; 0 until the first error
	okDurations       sketch.Store // durations of spans without an error
}

// errorPart is the part of a row for spans with an error.
type errorPart struct {
	durations sketch.Store
	duration  float64 // part of the row's Counts.Duration
}

// NewTable returns a table for key IDs below keys, and buckets of the given width.
func NewTable(keys int, width time.Duration, sketches *sketch.Memory) *Table {
	return &Table{
		keys: keys, width: int64(width), index: make([]uint32, keys*windowBuckets),
		pages: sketch.NewArena(sketches),
	}
}

// Begin sets the start of the cycle. It must be called before the first Add.
func (t *Table) Begin(started time.Time) { t.oldest = oldestBucket(started, t.width) }

// Add counts a snapshot.
func (t *Table) Add(s *Slot) {
	index := &t.index[int(s.bucket)*t.keys+int(s.Key)] // index of the row plus one; 0 without a row
	if *index == 0 {
		t.rows = extend(t.rows, row{key: s.Key, bucket: uint32(s.bucket)}, len(t.index))
		*index = uint32(len(t.rows))
	}
	r := &t.rows[*index-1]
	store := &r.okDurations
	r.Spans += s.spans()
	r.Hits += s.Weight
	r.Duration += float64(s.Duration) * s.Weight
	if s.Flags&span.TopLevel != 0 {
		r.TopLevel += s.Weight
	}
	if s.Flags&span.Error != 0 {
		r.Errors += s.Weight
		errors := t.errorsOf(r)
		errors.duration += float64(s.Duration) * s.Weight
		store = &errors.durations
	}
	store.Add(&t.pages, s.Duration)
}

// errorsOf returns the counts of a row's spans with an error, and creates them for the first such span.
func (t *Table) errorsOf(r *row) *errorPart {
	if r.errorIndexPlusOne == 0 {
		t.errors = extend(t.errors, errorPart{}, len(t.index))
		r.errorIndexPlusOne = uint32(len(t.errors))
	}
	return &t.errors[r.errorIndexPlusOne-1]
}

// extend appends an element to s and returns the new slice, like append. The capacity of the new slice
// is never more than limit. s must have fewer than limit elements.
func extend[T any](s []T, element T, limit int) []T {
	const minCapacity = 64
	if len(s) == cap(s) {
		newCapacity := min(max(minCapacity, 2*cap(s)), limit)
		s = append(make([]T, 0, newCapacity), s...)
	}
	return append(s, element)
}

// Len returns the number of rows, which are valid until Reset.
func (t *Table) Len() int { return len(t.rows) }

// Reset empties the table. It keeps the memory of the rows and releases the pages of the sketches.
func (t *Table) Reset() {
	t.rows, t.errors = t.rows[:0], t.errors[:0]
	clear(t.index)
	t.pages.Reset()
	t.clearPending()
}

// clearPending resets the numbers of snapshots and values that are pending.
func (t *Table) clearPending() {
	t.pending.Store(0)
	t.pendingValues.Store(0)
}

// Counts are the counts of a key, except for the distribution of durations.
//
// Weighted counts are float64, as in the agent: exact for integers up to 2^53, fractional if
// weights are, and unable to wrap around. Exporters cap them to the largest value of the payload's
// type.
type Counts struct {
	Spans    uint64  // snapshots, unweighted: the unit of the accounting; 0 for values of a measure
	Hits     float64 // weighted, like the following three
	Errors   float64
	TopLevel float64
	Duration float64 // nanoseconds, not truncated
}

// Add adds the counts of the same key from another table.
func (c *Counts) Add(other *Counts) {
	c.Spans += other.Spans
	c.Hits += other.Hits
	c.Errors += other.Errors
	c.TopLevel += other.TopLevel
	c.Duration += other.Duration
}

// distribution contains the durations of a merged row, by bin. Unlike a Store it can have any
// mapping and never collapses bins.
type distribution struct {
	zeros uint64
	bins  []sketch.Bin // lowest first, without duplicates
}

// add adds bins, and returns the number of bins that are new to the distribution.
func (d *distribution) add(b *sketch.Bins) (added int) {
	d.zeros += b.Zeros
	for _, bin := range b.List {
		i, found := slices.BinarySearchFunc(d.bins, bin.Index, func(b sketch.Bin, index uint16) int {
			return cmp.Compare(b.Index, index)
		})
		if found {
			d.bins[i].Spans += bin.Spans
			continue
		}
		d.bins = slices.Insert(d.bins, i, bin)
		added++
	}
	return added
}

func (d *distribution) mean(mapping sketch.Mapping) float64 {
	return (&sketch.Bins{Zeros: d.zeros, List: d.bins}).Mean(mapping)
}

func (d *distribution) read(to sketch.Sum, mapping sketch.Mapping) {
	to.AddZeros(d.zeros)
	to.AddBins(mapping, d.bins)
}

// Part is one row of one table: the counts of a key in one bucket by one drainer, or the merged
// groups of a key in one bucket and mapping.
type Part struct {
	Key     registry.KeyID
	Mapping sketch.MappingID
	Bucket  int64 // start of the time bucket, nanoseconds since the Unix epoch

	table  *Table  // nil for merged groups
	merged *Merged // nil for rows of a drainer
	index  int32   // index of the row in table or merged
}

// Part returns a row.
func (t *Table) Part(at int) Part {
	r := &t.rows[at]
	return Part{Key: r.key, Bucket: t.oldest + int64(r.bucket)*t.width, table: t, index: int32(at)}
}

func (m *Merged) part(at int) Part {
	row := &m.rows[at]
	return Part{Key: row.key, Mapping: row.mapping, Bucket: row.bucket, merged: m, index: int32(at)}
}

// Counts returns the counts of the row.
func (p *Part) Counts() Counts {
	if p.countedByTracer() {
		row, _ := p.mergedRow()
		return row.Counts
	}
	return p.drainerRow().Counts
}

// countedByTracer reports whether a tracer has counted the spans, and not the daemon.
func (p *Part) countedByTracer() bool { return p.merged != nil }

// mergedRow returns the row that a tracer has counted, and the mapping that assigns durations to the row's bins. It must
// be called only if countedByTracer returns true.
func (p *Part) mergedRow() (*mergedRow, sketch.Mapping) {
	return &p.merged.rows[p.index], p.merged.mappings[p.Mapping]
}

// drainerRow returns the row that a drainer has counted. It must be called only if countedByTracer returns false.
func (p *Part) drainerRow() *row { return &p.table.rows[p.index] }

// ReadOK adds the durations of all spans without an error to sum. If sum is a sketch.Sketch, which contains bins of one
// mapping, all parts that are added to it must have the same Mapping.
func (p *Part) ReadOK(sum sketch.Sum) {
	if p.countedByTracer() {
		row, mapping := p.mergedRow()
		row.okDurations.read(sum, mapping)
		return
	}
	p.drainerRow().okDurations.Read(&p.table.pages, sum)
}

// ReadErrors adds the durations of all spans with an error to sum. If sum is a sketch.Sketch, which contains bins of one
// mapping, all parts that are added to it must have the same Mapping.
func (p *Part) ReadErrors(sum sketch.Sum) {
	if p.countedByTracer() {
		row, mapping := p.mergedRow()
		row.errorDurations.read(sum, mapping)
		return
	}
	errors := p.drainerErrors()
	if errors != nil {
		errors.durations.Read(&p.table.pages, sum)
	}
}

// ErrorDuration returns the total duration of all spans with an error, in nanoseconds. The result is an
// estimate if a tracer has aggregated the spans, because tracers send one total for spans with and
// without an error.
func (p *Part) ErrorDuration() float64 {
	if p.countedByTracer() {
		row, mapping := p.mergedRow()
		return row.errorDuration(mapping)
	}
	errors := p.drainerErrors()
	if errors == nil {
		return 0
	}
	return errors.duration
}

// drainerErrors returns the counts of the spans with an error that a drainer has counted, or nil if there are none. It
// must be called only if countedByTracer returns false.
func (p *Part) drainerErrors() *errorPart {
	row := p.drainerRow()
	hasErrors := row.errorIndexPlusOne != 0
	if !hasErrors {
		return nil
	}
	return &p.table.errors[row.errorIndexPlusOne-1]
}
