package otlp

import (
	"math"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/flush"
	"github.com/spanstatsd/spanstatsd/internal/flush/totals"
	"github.com/spanstatsd/spanstatsd/internal/sketch"
)

// encoder makes requests of sealed cycles. Its memory is reused from cycle to cycle; it
// has one user at a time.
type encoder struct {
	dialect   dialect
	grouper   grouper
	windows   windows
	totals    *totals.Totals // nil where points are deltas
	body      body
	calls     *metric // nil where the dialect has none
	durations *metric
	histogram sketch.Histogram // in which the rows of a series are added up; empty in between
	point     point            // that is being written
	list      attributes       // of it

	exemplars *exemplars.Table                      // nil where there are none
	sealed    exemplars.Sealed                      // of the cycle that is being encoded
	counted   window                                // of that cycle
	ofSeries  map[*totals.Series]exemplars.Exemplar // of that cycle, where points are running totals
}

// newEncoder makes an encoder of deltas, or where limits are given of running totals.
func newEncoder(d dialect, version string, limits *totals.Limits) *encoder {
	scope := appendString(nil, fieldScopeName, "spanstatsd")
	if version != "" {
		scope = appendString(scope, fieldScopeVersion, valid(version))
	}
	calls, durations := d.metrics()
	temporality := uint64(delta)
	e := &encoder{dialect: d, grouper: newGrouper(d)}
	if limits != nil {
		e.totals, temporality = totals.New(*limits, overflowAttributes(), commonResource()), cumulative
		e.ofSeries = map[*totals.Series]exemplars.Exemplar{}
	}
	e.durations = newHistogram(durations, temporality)
	e.body = body{scope: appendMessage(nil, fieldScope, scope), metrics: []*metric{e.durations}}
	if calls != "" {
		e.calls = newSum(calls, temporality)
		e.body.metrics = []*metric{e.calls, e.durations}
	}
	return e
}

// encode makes requests of a sealed cycle's rows, none longer than limit, and hands each
// to emit with the spans that it stands for, or what its running totals say; its bytes are
// good until emit returns. It counts the spans that will be in none.
func (e *encoder) encode(sealed *aggregate.Sealed, rows []flush.Row, limit int, emit func(body []byte, spans uint64, said *totals.Said)) (made flush.Encoded) {
	w := e.windows.next(sealed.Start, sealed.End)
	e.sealed, e.counted = e.exemplars.Seal(sealed.Cycle), w
	r := outgoing{body: &e.body, limit: limit, emit: emit}
	e.body.begin()
	if e.totals == nil {
		e.writeDeltas(&r, sealed, rows, w)
		r.end()
		made.Lost = map[flush.Reason]uint64{flush.Unencodable: r.unencodable}
		return made
	}
	r.unencodable = e.addUp(sealed, rows, w)
	e.writeTotals(&r, w)
	r.end()
	ended, counts := e.totals.Lost(), e.totals.Counts()
	made.Lost = map[flush.Reason]uint64{flush.Unencodable: r.unencodable, flush.Expired: ended.Idle, flush.QueueFull: ended.PushedOut}
	made.Totals = flush.TotalsStats{Series: counts.Series, Ended: counts.Ended, Overflowed: counts.Overflowed}
	return made
}

// writeDeltas writes what the cycle counted.
func (e *encoder) writeDeltas(r *outgoing, sealed *aggregate.Sealed, rows []flush.Row, w window) {
	resource := int32(-1)
	for _, g := range e.grouper.group(sealed, rows) {
		if g.resource != resource {
			resource = g.resource
			r.of([]byte(e.grouper.resources[resource]))
		}
		total := e.total(rows, g)
		r.addDelta(total.Spans, func() {
			e.outcomes(sealed, rows, g, &total, func(p *point) { e.write(p, w) })
		})
	}
}

// counts is what was counted of a series.
type counts struct {
	aggregate.Counts
	errorDuration float64 // of Duration what spans with an error took
}

func (e *encoder) total(rows []flush.Row, g group) (total counts) {
	for i := g.first; i >= 0; i = e.grouper.next[i] {
		total.Add(&rows[i].Counts)
		total.errorDuration += rows[i].ErrorDuration()
	}
	return total
}

// point is what was counted of those spans of a series that have one outcome.
type point struct {
	list      []byte // of attributes
	calls     uint64
	seconds   float64
	durations sketch.Buckets
	exemplar  exemplars.Exemplar // none where its Span is 0
}

// outcomes visits the spans of a series without an error, and those with one, where there are
// any. A point is valid until the next.
func (e *encoder) outcomes(sealed *aggregate.Sealed, rows []flush.Row, g group, total *counts, visit func(*point)) {
	key := rows[g.first].Key()
	e.list.bytes = e.list.bytes[:0]
	e.dialect.key(&e.list, &sealed.Origins[rows[g.first].Origin()], key)
	ofKey := len(e.list.bytes)
	isTopLevel := total.Hits > 0 && total.TopLevel >= total.Hits
	for _, isError := range [...]bool{false, true} {
		for i := g.first; i >= 0; i = e.grouper.next[i] {
			if isError {
				rows[i].ReadErrors(&e.histogram)
			} else {
				rows[i].ReadOK(&e.histogram)
			}
		}
		hits, duration := total.Hits-total.Errors, total.Duration-total.errorDuration
		if isError {
			hits, duration = total.Errors, total.errorDuration
		}
		if e.readPoint(hits, duration) {
			e.list.bytes = e.list.bytes[:ofKey]
			e.list.begin()
			e.dialect.outcome(&e.list, isError, isTopLevel)
			e.point.list, e.point.exemplar = e.list.bytes, e.slowest(rows, g, isError)
			visit(&e.point)
		}
		e.histogram.Reset()
	}
}

// readPoint makes a point of the histogram, which has each span once. The sum has it as often as
// it weighs, so that is scaled to the spans. Where no span weighs more or less than one, that
// changes nothing. It reports whether anything was counted.
func (e *encoder) readPoint(hits, nanoseconds float64) bool {
	e.point = point{calls: flush.Whole(hits, math.MaxInt64), durations: e.histogram.Buckets(sketch.DefaultMaxBuckets)}
	p := &e.point
	if spans := float64(p.durations.Spans); hits > 0 && hits != spans {
		nanoseconds *= spans / hits
	}
	if p.durations.Spans > 0 {
		p.seconds = max(0, nanoseconds) / 1e9
	}
	return p.durations.Spans > 0 || p.calls > 0
}

// write adds a point to the metrics of its resource.
func (e *encoder) write(p *point, w window) {
	if e.calls != nil && p.calls > 0 {
		e.calls.point = appendNumber(e.calls.point[:0], p.list, w, p.calls)
		e.calls.add()
	}
	if p.durations.Spans > 0 {
		e.durations.point = appendHistogram(e.durations.point[:0], p.list, w, p.durations, p.seconds)
		if p.exemplar.Span != 0 {
			e.durations.point = appendExemplar(e.durations.point, p.exemplar, e.counted)
		}
		e.durations.add()
	}
}
