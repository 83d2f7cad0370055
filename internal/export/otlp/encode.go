package otlp

import (
	"iter"
	"math/rand/v2"
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
	writer     *writer
	reader     *points.Reader
	exemplars  *exemplars.Table // nil disables them
	objectives objectives
}

// pointsConfig returns the configuration of the names of metrics and attributes.
func (c *Config) pointsConfig() points.Config {
	return points.Config{
		Dialect: c.Dialect, Dimensions: c.Dimensions, Instance: c.Instance, Bounds: c.Bounds, Measures: c.Measures,
	}
}

// newEncoding returns an encoding for points with the given temporality, a value of AggregationTemporality.
func newEncoding(c *Config, temporality uint64) encoding {
	reader := points.NewReader(c.pointsConfig())
	w := newWriter(reader.Metrics(), c.Version, temporality)
	if c.Millis {
		w.useMilliseconds()
	}
	return encoding{writer: w, reader: reader, exemplars: c.Exemplars, objectives: newObjectives(c, w)}
}

// begin prepares for the points of a cycle, and writes those of objectives. emit gets each complete request.
func (e *encoding) begin(c *export.Cycle, emit func(*request)) {
	w := e.writer
	w.begin(c, emit)
	e.reader.BeginCycle(e.exemplars.Seal(c.Cycle), int64(w.window.start), int64(w.window.end))
	e.objectives.encode(c, w)
}

// deltaEncoder writes points of the spans that one cycle counted.
type deltaEncoder struct{ encoding }

// encode writes the counts of a cycle, one export interval, as OTLP requests, and passes each request to emit. The
// result contains the number of spans in series that are too large for a request.
func (e *deltaEncoder) encode(c *export.Cycle, emit func(*request)) export.Encoded {
	e.begin(c, emit)
	var encoded export.Encoded
	currentResource := int32(-1) // none yet
	for _, group := range e.reader.GroupRows(c.Sealed, c.Rows) {
		if group.Resource != currentResource { // the groups of one resource are adjacent
			currentResource = group.Resource
			e.writer.beginResource([]byte(e.reader.Resource(group)))
		}
		e.encodeSeries(c, group, &encoded)
	}
	e.writer.endRequest()
	return encoded
}

// encodeSeries adds the points of a series to the current request, or to a new one if the current one is full.
// If the points do not even fit in an empty request, it discards them, and counts their spans and values in encoded.
func (e *deltaEncoder) encodeSeries(c *export.Cycle, series points.Group, encoded *export.Encoded) {
	w := e.writer
	start := w.window.start
	counts := e.reader.SumRows(c.Rows, series)
	writePoint := func(p *points.Point) { w.writePoint(p, start) }
	e.reader.VisitPoints(c.Sealed, c.Rows, series, &counts, writePoint)
	fits := w.endSeries()
	if !fits {
		encoded.Unencodable += counts.Spans
		encoded.UnencodableValues += counts.Values
		return
	}
	// endSeries can have begun a new request. In any case, w.request is the one that contains the points.
	w.request.spans += counts.Spans
	w.request.values += counts.Values
}

// totalsEncoder writes points of running totals.
type totalsEncoder struct {
	encoding
	totals *points.Running
}

// encode adds the counts of a cycle, one export interval, to the running totals. It then writes the totals of all
// series as OTLP requests, including series without new spans, because receivers forget a series that is not sent.
// It begins with a random series, so that a full queue does not always drop the same series.
func (e *totalsEncoder) encode(c *export.Cycle, emit func(*request)) export.Encoded {
	e.begin(c, emit)
	w := e.writer
	period := w.window                                                            // of the cycle, set by begin
	notAddedSpans := e.totals.AddCycle(c, int64(period.start), int64(period.end)) // no total contains them
	encoded := export.Encoded{Unencodable: notAddedSpans}
	for resource := range fromRandomStart(e.totals.Resources()) {
		w.beginResource([]byte(resource.Encoded))
		for series := range fromRandomStart(resource.Series) {
			e.encodeSeries(series, &encoded)
		}
	}
	w.endRequest()
	counts := e.totals.Counts()
	encoded.Totals = export.TotalsStats{Series: counts.Series, Ended: counts.Ended, Overflowed: counts.Overflowed}
	return encoded
}

// encodeSeries adds the running totals of a series to the current request, or to a new one if the current one is
// full. If they do not even fit in an empty request, the spans or values that no earlier request has delivered are lost,
// and encodeSeries counts them in encoded.
func (e *totalsEncoder) encodeSeries(s *totals.Series, encoded *export.Encoded) {
	w := e.writer
	point := points.Point{
		Metric: s.Metric, Attributes: []byte(s.Attributes), Calls: s.Calls, Seconds: s.Seconds,
		Durations: s.Buckets, Classic: s.Classic, Exemplar: e.totals.Slowest[s],
	}
	w.writePoint(&point, uint64(s.Start))
	fits := w.endSeries()
	countsValues := e.reader.Metrics()[s.Metric].IsMeasure // instead of spans
	if !fits {
		lost := e.totals.Abandon(s)
		if countsValues {
			encoded.UnencodableValues += lost
		} else {
			encoded.Unencodable += lost
		}
		return
	}
	if countsValues {
		return // the request counts only spans; the values of a cycle are delivered when all its spans are
	}
	undelivered := e.totals.Undelivered(s)
	if undelivered > 0 {
		w.request.undelivered = append(w.request.undelivered, undelivered)
	}
}

// fromRandomStart iterates over a list from a random position, wrapping around at the end.
func fromRandomStart[T any](list []T) iter.Seq[T] {
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

// newEncoder returns the encoder for the configured temporality. limits are those of running totals.
func newEncoder(c *Config, limits totals.Limits) encoder {
	if c.Temporality != Cumulative {
		return &deltaEncoder{newEncoding(c, delta)}
	}
	e := newEncoding(c, cumulative)
	return &totalsEncoder{e, points.NewRunning(e.reader, limits)}
}

// window is the period that a cycle's points cover, in nanoseconds since the Unix epoch.
type window struct{ start, end uint64 }

// next returns the window that follows w. A window is the period that the data points of one export interval cover.
// The next window begins at the end of w, so that windows leave no gap. If w is zero, it begins at cycleStart.
//
// A window is at least one nanosecond long, even if the wall clock has been set back. Receivers that add up deltas
// reject a point that does not end later than the last one.
func (w window) next(cycleStart, cycleEnd time.Time) window {
	start := w.end
	if start == 0 { // w is zero
		start = uint64(max(0, cycleStart.UnixNano()))
	}
	end := uint64(max(0, cycleEnd.UnixNano()))
	return window{start: start, end: max(end, start+1)}
}
