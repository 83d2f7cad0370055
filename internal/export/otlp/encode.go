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

// encoder makes requests of a sealed cycle, and passes each to emit. It has one user at a time.
type encoder interface {
	encode(c *export.Cycle, emit func(*request)) export.Encoded
}

// encoding is what both encoders have. Its memory is reused from cycle to cycle.
type encoding struct {
	writer    *writer
	reader    *points.Reader
	exemplars *exemplars.Table // nil: none
}

// newEncoding makes an encoding of points with one temporality, whose explicit buckets are in milliseconds
// if isMillis says so.
func newEncoding(c *Config, temporality uint64) encoding {
	reader := points.NewReader(points.Config{
		Dialect: c.Dialect, Dimensions: c.Dimensions, Instance: c.Instance, Bounds: c.Bounds,
	})
	calls, durations := reader.Metrics()
	w := newWriter(calls, durations, c.Version, temporality)
	if c.Bounds != nil {
		w.bounds, w.durations.field = c.Bounds, fieldMetricExplicit
	}
	if c.Millis {
		w.sendMillis(durations)
	}
	return encoding{writer: w, reader: reader, exemplars: c.Exemplars}
}

// begin begins a cycle.
func (e *encoding) begin(c *export.Cycle, emit func(*request)) {
	w := e.writer
	w.window = w.window.next(c.Start, c.End)
	w.limit, w.emit = c.Limit, emit
	e.reader.Begin(e.exemplars.Seal(c.Cycle), int64(w.window.start), int64(w.window.end))
}

// deltaEncoder makes points of what one cycle counted.
type deltaEncoder struct{ encoding }

func (e *deltaEncoder) encode(c *export.Cycle, emit func(*request)) export.Encoded {
	e.begin(c, emit)
	w, unencodable, resource := e.writer, uint64(0), int32(-1)
	for _, g := range e.reader.Group(c.Sealed, c.Rows) {
		if g.Resource != resource {
			resource = g.Resource
			w.beginResource([]byte(e.reader.Resource(g)))
		}
		total := e.reader.Total(c.Rows, g)
		e.reader.Outcomes(c.Sealed, c.Rows, g, &total, func(p *points.Point) { w.write(p, w.window.start) })
		if w.endSeries() {
			w.request.spans += total.Spans
		} else {
			unencodable += total.Spans
		}
	}
	w.end()
	return export.Encoded{Lost: map[export.Reason]uint64{export.Unencodable: unencodable}}
}

// totalsEncoder makes points of running totals.
type totalsEncoder struct {
	encoding
	totals *points.Running
}

// encode writes all series, including those that the cycle has not counted, because a reader forgets series
// that it is not sent. It begins with a random one, so that if the queue is too short for all of them,
// others are sent the next time. Spans of a series that fits in no request are lost: nothing waits for
// them.
func (e *totalsEncoder) encode(c *export.Cycle, emit func(*request)) export.Encoded {
	e.begin(c, emit)
	w, all := e.writer, e.totals
	lost := all.AddUp(c, int64(w.window.start), int64(w.window.end))
	for of := range rotated(all.Resources()) {
		w.beginResource([]byte(of.Encoded))
		for s := range rotated(of.Series) {
			p := points.Point{
				Attributes: []byte(s.Attributes), Calls: s.Calls, Seconds: s.Seconds,
				Durations: s.Buckets, Classic: s.Classic, Exemplar: all.Slowest[s],
			}
			w.write(&p, uint64(s.Start))
			if !w.endSeries() {
				lost += all.Abandon(s)
			} else if spans := all.Undelivered(s); spans > 0 {
				w.request.undelivered = append(w.request.undelivered, spans)
			}
		}
	}
	w.end()
	ended, counts := all.Lost(), all.Counts()
	return export.Encoded{
		Lost: map[export.Reason]uint64{
			export.Unencodable: lost, export.Expired: ended.Idle, export.QueueFull: ended.PushedOut,
		},
		Totals: export.TotalsStats{Series: counts.Series, Ended: counts.Ended, Overflowed: counts.Overflowed},
	}
}

// rotated visits a list from a random position on, and around.
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

// newEncoder makes the encoder that a configuration asks for.
func newEncoder(c *Config, limits totals.Limits) encoder {
	if c.Temporality != Cumulative {
		return &deltaEncoder{newEncoding(c, delta)}
	}
	e := newEncoding(c, cumulative)
	return &totalsEncoder{e, points.NewRunning(e.reader, limits)}
}

// window is the time that a cycle's points stand for, in nanoseconds since the Unix epoch.
type window struct{ start, end uint64 }

// next is the window after this one. The first begins when its cycle did, and each later one where the last
// ended, over cycles in which nothing was counted too: so a gap means that something was lost. No window is
// empty, and none overlaps another, even if the wall clock is set back: a receiver that adds up deltas
// refuses a point that ends no later than the last.
//
// The next daemon needs nothing of this: everything counted before a daemon ends is sent before it ends, in
// a window that ends then.
func (w window) next(start, end time.Time) window {
	from := w.end
	if from == 0 {
		from = uint64(max(0, start.UnixNano()))
	}
	return window{from, max(from+1, uint64(max(0, end.UnixNano())))}
}

// sendMillis makes explicit buckets, sums and exemplars be in milliseconds, as the Collector's connector
// has them unless its unit is seconds. A bound is rounded to picoseconds, so that 0.035 is exactly 35.
func (w *writer) sendMillis(durations string) {
	w.durations.head, w.nanos = metricHead(durations, "ms"), 1e6
	w.bounds = slices.Clone(w.bounds)
	for i, bound := range w.bounds {
		w.bounds[i] = math.Round(bound*1e12) / 1e9
	}
}
