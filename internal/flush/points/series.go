package points

import (
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/flush"
	"github.com/spanstatsd/spanstatsd/internal/sketch"
)

// Reader makes points of the rows of a cycle. See the package comment.
type Reader struct {
	Exemplars exemplars.Sealed // of the cycle

	grouper
	list      attributes       // of the point that is being made
	point     Point            // that is being made
	histogram sketch.Histogram // in which the rows of a series are added up; empty in between
	classic   *sketch.Classic  // the same by bounds, nil where there are none
	sums      []sketch.Sum     // both
}

// NewReader makes one.
func NewReader(c Config) *Reader {
	r := &Reader{grouper: newGrouper(&c)}
	r.list.labels, r.sums = r.written.labels, []sketch.Sum{&r.histogram}
	if len(c.Bounds) > 0 {
		r.classic = sketch.NewClassic(c.Bounds)
		r.sums = append(r.sums, r.classic)
	}
	return r
}

// Metrics are the names of those that count spans and durations. Where the first is empty,
// the count of durations says both.
func (r *Reader) Metrics() (calls, durations string) { return r.dialect.metrics() }

// Counts is what was counted of a series.
type Counts struct {
	aggregate.Counts
	errorDuration float64 // of Duration what spans with an error took
}

// Total is what was counted of a series.
func (r *Reader) Total(rows []flush.Row, g Group) (total Counts) {
	for i := g.first; i >= 0; i = r.next[i] {
		total.Add(&rows[i].Counts)
		total.errorDuration += rows[i].ErrorDuration()
	}
	return total
}

// Outcomes visits the spans of a series without an error, and those with one, where there are
// any. A point is valid until the next.
func (r *Reader) Outcomes(
	sealed *aggregate.Sealed, rows []flush.Row, g Group, total *Counts, visit func(*Point),
) {
	r.list.bytes = r.list.bytes[:0]
	r.dialect.key(&r.list, &sealed.Origins[rows[g.first].Origin()], rows[g.first].Key())
	ofKey := len(r.list.bytes)
	isTopLevel := total.Hits > 0 && total.TopLevel >= total.Hits
	for _, isError := range [...]bool{false, true} {
		hits, duration := total.Hits-total.Errors, total.Duration-total.errorDuration
		if isError {
			hits, duration = total.Errors, total.errorDuration
		}
		p := &r.point
		*p = Point{Exemplar: r.read(rows, g, isError)}
		if r.classic != nil {
			p.Classic = r.classic.Counts()
		}
		if p.count(&r.histogram, hits, duration) {
			r.list.bytes = r.list.bytes[:ofKey]
			r.list.begin()
			r.dialect.outcome(&r.list, isError, isTopLevel)
			p.Attributes = r.list.bytes
			visit(p)
		}
		r.histogram.Reset()
		if r.classic != nil {
			r.classic.Reset()
		}
	}
}

// read adds the spans of a series with one outcome to the histograms, and returns the slowest
// of those that are exemplars of its keys.
func (r *Reader) read(rows []flush.Row, g Group, isError bool) (slowest exemplars.Exemplar) {
	for i := g.first; i >= 0; i = r.next[i] {
		for _, to := range r.sums {
			if isError {
				rows[i].ReadErrors(to)
			} else {
				rows[i].ReadOK(to)
			}
		}
		slowest = slower(slowest, r.Exemplars.Of(uint32(rows[i].KeyID()), isError))
	}
	return slowest
}

// slower is one of two exemplars, or none of none.
func slower(a, b exemplars.Exemplar) exemplars.Exemplar {
	if a.Span == 0 || b.Duration > a.Duration {
		return b
	}
	return a
}
