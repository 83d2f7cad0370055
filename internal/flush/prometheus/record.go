package prometheus

import (
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/flush/totals"
)

// record is a series as it stood when a cycle had counted it. It never changes.
type record struct {
	labels     string // encoded
	start, end int64  // of its life so far
	calls      float64
	spans      uint64 // that have a duration
	seconds    float64
	scale      int32
	offset     int32 // of the first native bucket
	length     uint32
	zeros      uint64
	deltas     []int64            // of each native bucket to the one below
	cumulative []uint64           // by classic bucket
	exemplar   exemplars.Exemplar // none where its Span is 0
}

// next is the series as it stands at the end of a cycle. Prometheus numbers a native bucket by its
// upper bound. An exemplar stays until there is another, because scrapes are rarer than cycles.
func (r *record) next(s *totals.Series, end int64, e exemplars.Exemplar) *record {
	b := &s.Buckets
	n := &record{
		labels: r.labels, start: s.Start, end: end, calls: float64(s.Calls), spans: b.Spans,
		seconds: s.Seconds, scale: b.Scale, offset: b.Offset + 1, length: uint32(len(b.Counts)),
		zeros: b.Zeros, deltas: make([]int64, len(b.Counts)), cumulative: make([]uint64, len(s.Classic)),
		exemplar: e,
	}
	if e.Span == 0 {
		n.exemplar = r.exemplar
	}
	last, below := uint64(0), uint64(0)
	for i, spans := range b.Counts {
		n.deltas[i], last = int64(spans-last), spans
	}
	for i, spans := range s.Classic {
		below += spans
		n.cumulative[i] = below
	}
	return n
}

// What a record takes beside its lists, and what an element of a list does.
const (
	recordBytes  = int(unsafe.Sizeof(record{})) + 32
	elementBytes = 8
)
