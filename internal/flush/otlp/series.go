package otlp

import (
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/flush"
	"github.com/spanstatsd/spanstatsd/internal/sketch"
)

// reader makes points of the rows of a series.
type reader struct {
	grouper
	list      attributes       // of the point that is being made
	point     point            // that is being made
	histogram sketch.Histogram // in which the rows of a series are added up; empty in between
	exemplars exemplars.Sealed // of the cycle
}

// counts is what was counted of a series.
type counts struct {
	aggregate.Counts
	errorDuration float64 // of Duration what spans with an error took
}

func (r *reader) total(rows []flush.Row, g group) (total counts) {
	for i := g.first; i >= 0; i = r.next[i] {
		total.Add(&rows[i].Counts)
		total.errorDuration += rows[i].ErrorDuration()
	}
	return total
}

// outcomes visits the spans of a series without an error, and those with one, where there are
// any. A point is valid until the next.
func (r *reader) outcomes(
	sealed *aggregate.Sealed, rows []flush.Row, g group, total *counts, visit func(*point),
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
		*p = point{exemplar: r.read(rows, g, isError)}
		if p.count(&r.histogram, hits, duration) {
			r.list.bytes = r.list.bytes[:ofKey]
			r.list.begin()
			r.dialect.outcome(&r.list, isError, isTopLevel)
			p.list = r.list.bytes
			visit(p)
		}
		r.histogram.Reset()
	}
}

// read adds the spans of a series with one outcome to the histogram, and returns the slowest
// of those that are exemplars of its keys.
func (r *reader) read(rows []flush.Row, g group, isError bool) (slowest exemplars.Exemplar) {
	for i := g.first; i >= 0; i = r.next[i] {
		if isError {
			rows[i].ReadErrors(&r.histogram)
		} else {
			rows[i].ReadOK(&r.histogram)
		}
		slowest = slower(slowest, r.exemplars.Of(uint32(rows[i].KeyID()), isError))
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
