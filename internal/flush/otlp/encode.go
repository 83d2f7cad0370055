package otlp

import (
	"math"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/flush"
	"github.com/spanstatsd/spanstatsd/internal/flush/points"
	"github.com/spanstatsd/spanstatsd/internal/flush/totals"
)

// encoder makes requests of sealed cycles. Its memory is reused from cycle to cycle; it
// has one user at a time.
type encoder struct {
	writer
	reader    *points.Reader
	running   *points.Running  // nil where points are deltas
	exemplars *exemplars.Table // nil where there are none
}

// newEncoder makes an encoder of deltas, or where limits are given of running totals.
func newEncoder(c points.Config, version string, limits *totals.Limits) *encoder {
	e := &encoder{reader: points.NewReader(c)}
	calls, durations := e.reader.Metrics()
	e.hasCalls = calls != ""
	temporality := uint64(delta)
	if limits != nil {
		e.running, temporality = points.NewRunning(e.reader, *limits), cumulative
	}
	e.request = newRequest(calls, durations, version, temporality)
	if e.bounds, e.nanos = c.Bounds, 1e9; e.bounds != nil {
		e.request.durations.field = fieldMetricExplicit
	}
	return e
}

// sendMillis has explicit buckets, sums and exemplars in milliseconds, as the Collector's connector has
// them unless its unit is seconds. A bound is rounded to picoseconds, so that 0.035 is 35 and no more.
func (e *encoder) sendMillis() {
	_, durations := e.reader.Metrics()
	e.request.durations.head, e.nanos = metricHead(durations, "ms"), 1e6
	e.bounds = slices.Clone(e.bounds)
	for i, bound := range e.bounds {
		e.bounds[i] = math.Round(bound*1e12) / 1e9
	}
}

// encode makes requests of a sealed cycle's rows, none longer than limit, and hands each
// to emit with the spans that it stands for, or what its running totals say; its bytes are
// good until emit returns. It counts the spans that will be in none.
func (e *encoder) encode(
	sealed *aggregate.Sealed, rows []flush.Row, limit int,
	emit func(body []byte, spans uint64, said *totals.Said),
) flush.Encoded {
	e.window = e.window.next(sealed.Start, sealed.End)
	e.reader.Exemplars = e.exemplars.Seal(sealed.Cycle)
	e.request.limit, e.request.emit = limit, emit
	defer e.request.end()
	if e.running != nil {
		lost := e.running.AddUp(sealed, rows, int64(e.window.start), int64(e.window.end))
		return e.writeTotals(e.running, lost)
	}
	return flush.Encoded{Lost: map[flush.Reason]uint64{flush.Unencodable: e.writeDeltas(sealed, rows)}}
}

// writeDeltas writes what the cycle counted. It returns the spans that fit in no request.
func (e *encoder) writeDeltas(sealed *aggregate.Sealed, rows []flush.Row) (unencodable uint64) {
	resource := int32(-1)
	for _, g := range e.reader.Group(sealed, rows) {
		if g.Resource != resource {
			resource = g.Resource
			e.of([]byte(e.reader.Resource(g)))
		}
		total := e.reader.Total(rows, g)
		e.reader.Outcomes(sealed, rows, g, &total, func(p *points.Point) { e.write(p, e.window.start) })
		if e.add() {
			e.spans += total.Spans
		} else {
			unencodable += total.Spans
		}
	}
	return unencodable
}
