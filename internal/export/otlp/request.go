package otlp

import (
	"slices"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/export/points"
	"github.com/spanstatsd/spanstatsd/internal/wire/protolite"
)

// request is a request that a writer has completed, or is writing. A completed request is valid until
// emit returns.
type request struct {
	body        []byte
	spans       uint64   // 0 for running totals
	undelivered []uint64 // spans that the receiver may lack, per series of running totals
}

// writer writes the points of series into requests, none longer than limit. For each resource, the
// caller calls beginResource; then for each series of the resource, write for each point, then
// endSeries; and end after the last series. A series whose points do not fit in a request begins the
// next request.
type writer struct {
	limit  int
	emit   func(*request)
	window window    // of the current cycle
	bounds []float64 // bounds of explicit buckets, as sent; nil for exponential buckets
	nanos  float64   // nanoseconds per unit of durations

	scope            []byte // scope of all metrics, encoded as a field
	calls, durations metric

	request   request // the body contains the resources before the current one
	resource  []byte  // attributes of the current resource
	hasPoints bool    // the request has at least one complete series
	scratch   []byte  // the point that is being written
}

// metric is one of the two metrics of a resource.
type metric struct {
	name   string
	head   []byte           // name and unit, encoded
	field  protolite.Number // of its data
	tail   []byte           // fields of the data that follow the points
	points []byte           // encoded points of complete series
	series []byte           // encoded points of the current series
}

// newWriter returns a writer for the two metrics, with the parts of their encoding that never
// change.
func newWriter(calls, durations, version string, temporality uint64) *writer {
	scope := protolite.AppendBytes(nil, fieldScopeName, "spanstatsd")
	if version != "" {
		scope = protolite.AppendBytes(scope, fieldScopeVersion, strings.ToValidUTF8(version, "\uFFFD"))
	}
	tail := protolite.AppendVarint(nil, fieldTemporality, temporality)
	return &writer{
		nanos: 1e9,
		scope: protolite.AppendBytes(nil, fieldScope, scope),
		calls: metric{
			name: calls, head: protolite.AppendBytes(nil, fieldMetricName, calls), field: fieldMetricSum,
			tail: protolite.AppendVarint(slices.Clone(tail), fieldIsMonotonic, 1),
		},
		durations: metric{
			name: durations, head: metricHead(durations, "s"), field: fieldMetricHistogram, tail: tail,
		},
	}
}

func metricHead(name, unit string) []byte {
	return protolite.AppendBytes(protolite.AppendBytes(nil, fieldMetricName, name), fieldMetricUnit, unit)
}

// beginResource begins the metrics of a resource.
func (w *writer) beginResource(resource []byte) {
	w.endResource()
	w.resource = resource
}

// write adds a point to the current series. The period of the point is from start to the end of the
// cycle's window. If the dialect has no metric for calls (calls.name is empty), only durations are
// written.
func (w *writer) write(p *points.Point, start uint64) {
	period := window{start, w.window.end}
	if w.calls.name != "" && p.Calls > 0 {
		w.scratch = appendNumber(w.scratch[:0], p, period)
		w.calls.series = protolite.AppendBytes(w.calls.series, fieldPoints, w.scratch)
	}
	if p.Durations.Spans > 0 {
		if w.bounds == nil {
			w.scratch = w.appendExponential(w.scratch[:0], p, period)
		} else {
			w.scratch = w.appendExplicit(w.scratch[:0], p, period)
		}
		w.durations.series = protolite.AppendBytes(w.durations.series, fieldPoints, w.scratch)
	}
}

// endSeries adds the current series to the request. If the request would exceed the limit then, it
// ends the request first, and adds the series to the next one. If the series alone exceeds the
// limit, endSeries discards it and reports false.
func (w *writer) endSeries() (fits bool) {
	defer func() { w.calls.series, w.durations.series = w.calls.series[:0], w.durations.series[:0] }()
	for {
		calls, durations := len(w.calls.points), len(w.durations.points)
		w.calls.points = append(w.calls.points, w.calls.series...)
		w.durations.points = append(w.durations.points, w.durations.series...)
		if w.size() <= w.limit {
			w.hasPoints = true
			return true
		}
		w.calls.points, w.durations.points = w.calls.points[:calls], w.durations.points[:durations]
		if !w.hasPoints {
			return false
		}
		w.end()
	}
}

// end passes the request to emit, unless it is empty, and begins the next one.
func (w *writer) end() {
	w.endResource()
	if w.hasPoints {
		w.emit(&w.request)
	}
	w.request, w.hasPoints = request{body: w.request.body[:0]}, false
}

// endResource appends the metrics of the current resource to the request.
func (w *writer) endResource() {
	scope := w.scopeSize()
	if scope == 0 {
		return
	}
	b := protolite.AppendHead(w.request.body, fieldResourceMetrics,
		protolite.Size(len(w.resource))+protolite.Size(scope))
	b = protolite.AppendBytes(b, fieldResource, w.resource)
	b = append(protolite.AppendHead(b, fieldScopeMetrics, scope), w.scope...)
	for _, m := range [...]*metric{&w.calls, &w.durations} {
		if len(m.points) > 0 {
			b = append(protolite.AppendHead(b, fieldMetrics, m.size()), m.head...)
			b = append(protolite.AppendHead(b, m.field, len(m.points)+len(m.tail)), m.points...)
			b = append(b, m.tail...)
			m.points = m.points[:0]
		}
	}
	w.request.body = b
}

// size returns the exact length of the request.
func (w *writer) size() int {
	scope := w.scopeSize()
	if scope == 0 {
		return len(w.request.body)
	}
	return len(w.request.body) +
		protolite.Size(protolite.Size(len(w.resource))+protolite.Size(scope))
}

// scopeSize returns the length of the metrics of the current resource, or 0 if it has no points.
func (w *writer) scopeSize() (size int) {
	for _, m := range [...]*metric{&w.calls, &w.durations} {
		if len(m.points) > 0 {
			size += protolite.Size(m.size())
		}
	}
	if size > 0 {
		size += len(w.scope)
	}
	return size
}

func (m *metric) size() int { return len(m.head) + protolite.Size(len(m.points)+len(m.tail)) }
