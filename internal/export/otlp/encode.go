package otlp

import (
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/points"
	"github.com/spanstatsd/spanstatsd/internal/export/totals"
)

// encoder encodes a sealed cycle as requests, and passes each to emit. It is not safe for
// concurrent use.
type encoder interface {
	encode(c *export.Cycle, emit func(*request)) export.Encoded
}

// encoding is the common part of both encoders. Its memory is reused for the next cycle.
type encoding struct {
	writer    *writer
	reader    *points.Reader
	exemplars *exemplars.Table // nil disables them
}

// newEncoding returns an encoding for points with the given temporality.
func newEncoding(c *Config, temporality uint64) encoding {
	reader := points.NewReader(points.Config{
		Dialect: c.Dialect, Dimensions: c.Dimensions, Instance: c.Instance, Bounds: c.Bounds,
	})
	calls, durations := reader.MetricNames()
	w := newWriter(calls, durations, c.Version, temporality)
	if c.Bounds != nil {
		w.bounds, w.durations.field = c.Bounds, fieldMetricExplicit
	}
	if c.Millis {
		w.sendMillis(durations)
	}
	return encoding{writer: w, reader: reader, exemplars: c.Exemplars}
}

// begin prepares for the points of a cycle.
func (e *encoding) begin(c *export.Cycle, emit func(*request)) {
	w := e.writer
	w.window = w.window.next(c.Start, c.End)
	w.limit, w.emit = c.Limit, emit
	e.reader.Begin(e.exemplars.Seal(c.Cycle), int64(w.window.start), int64(w.window.end))
}

// deltaEncoder writes points of the spans that one cycle counted.
type deltaEncoder struct{ encoding }

// encode writes the series of a cycle, resource by resource. It counts spans of series that are too
// large for a request as unencodable.
func (e *deltaEncoder) encode(c *export.Cycle, emit func(*request)) export.Encoded {
	e.begin(c, emit)
	w, unencodable, resource := e.writer, uint64(0), int32(-1)
	for _, g := range e.reader.GroupRows(c.Sealed, c.Rows) {
		if g.Resource != resource {
			resource = g.Resource
			w.beginResource([]byte(e.reader.Resource(g)))
		}
		sum := e.reader.AddRows(c.Rows, g)
		e.reader.VisitPoints(c.Sealed, c.Rows, g, &sum, func(p *points.Point) { w.write(p, w.window.start) })
		if fits := w.endSeries(); fits {
			w.request.spans += sum.Spans
		} else {
			unencodable += sum.Spans
		}
	}
	w.end()
	return export.Encoded{Unencodable: unencodable}
}

// totalsEncoder writes points of running totals.
type totalsEncoder struct {
	encoding
	totals *points.Running
}

// encode writes all series. It includes series without new spans, because receivers forget a series
// that is not sent. It begins with a random series: if the queue is too short for all payloads, the
// next cycle sends others. If a series is too large for a request, its undelivered spans are lost.
func (e *totalsEncoder) encode(c *export.Cycle, emit func(*request)) export.Encoded {
	e.begin(c, emit)
	w, totals := e.writer, e.totals
	lost := totals.AddCycle(c, int64(w.window.start), int64(w.window.end))
	for resource := range rotated(totals.Resources()) {
		w.beginResource([]byte(resource.Encoded))
		for s := range rotated(resource.Series) {
			p := points.Point{
				Attributes: []byte(s.Attributes), Calls: s.Calls, Seconds: s.Seconds,
				Durations: s.Buckets, Classic: s.Classic, Exemplar: totals.Slowest[s],
			}
			w.write(&p, uint64(s.Start))
			if fits := w.endSeries(); !fits {
				lost += totals.Abandon(s)
				continue
			}
			if spans := totals.Undelivered(s); spans > 0 { // the receiver may lack them until it accepts this request
				w.request.undelivered = append(w.request.undelivered, spans)
			}
		}
	}
	w.end()
	counts := totals.Counts()
	return export.Encoded{
		Unencodable: lost,
		Totals:      export.TotalsStats{Series: counts.Series, Ended: counts.Ended, Overflowed: counts.Overflowed},
	}
}

// rotated iterates over a list from a random position, wrapping around at the end.
func rotated[T any](list []T) iter.Seq[T] {
	return func(yield func(T) bool) {
		if len(list) == 0 {
			return
		}
		first := rand.IntN(len(list))
		for i := range list {
			if !yield(list[(first+i)%len(list)]) {
				return
			}
		}
	}
}

// newEncoder returns the encoder for the configured temporality.
func newEncoder(c *Config, limits totals.Limits) encoder {
	if c.Temporality != Cumulative {
		return &deltaEncoder{newEncoding(c, delta)}
	}
	e := newEncoding(c, cumulative)
	return &totalsEncoder{e, points.NewRunning(e.reader, limits)}
}

// window is the period that a cycle's points cover, in nanoseconds since the Unix epoch.
type window struct{ start, end uint64 }

// next returns the window of the next cycle, given the start and end of that cycle. w is the window
// of the previous cycle, or zero for the first one. A window begins at the end of the previous one,
// even if nothing was counted in between, so a gap between windows means that points were lost.
// Windows are not empty and do not overlap, even if the wall clock is set back: receivers that add
// up deltas reject a point that does not end later than the last.
//
// Windows are not stored for the next daemon. At shutdown, a daemon sends everything in a window that
// ends at the shutdown.
func (w window) next(start, end time.Time) window {
	from := w.end
	if isFirst := w.end == 0; isFirst {
		from = uint64(max(0, start.UnixNano()))
	}
	to := uint64(max(0, end.UnixNano()))
	return window{start: from, end: max(from+1, to)}
}

// sendMillis changes the unit of explicit buckets, sums and exemplars to milliseconds, as in the
// Collector's connector by default. Bounds are rounded to picoseconds, so that 0.035 becomes
// exactly 35.
func (w *writer) sendMillis(durations string) {
	w.durations.head, w.nanos = metricHead(durations, "ms"), 1e6
	w.bounds = slices.Clone(w.bounds)
	for i, bound := range w.bounds {
		w.bounds[i] = math.Round(bound*1e12) / 1e9
	}
}
