package otlp

import (
	"slices"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/export/points"
	"github.com/spanstatsd/spanstatsd/internal/wire/protolite"
)

// request is one that is complete, or being filled. It is valid until emit returns.
type request struct {
	body        []byte
	spans       uint64   // in it; 0 for running totals
	undelivered []uint64 // spans of each series of running totals that the receiver may lack
}

// writer writes the points of series into requests, none longer than limit. A series that does not fit in a
// request begins the next one.
type writer struct {
	limit  int
	emit   func(*request)
	window window    // of the cycle that is being encoded, or was last
	bounds []float64 // of explicit buckets, as they are sent; nil if buckets are exponential
	nanos  float64   // of the unit that durations are in

	scope            []byte // of all metrics, encoded as a field
	calls, durations metric

	request   request // its body has the metrics of the resources before the present one
	resource  []byte  // the present one's attributes
	hasPoints bool
	scratch   []byte // the point that is being written
}

// metric is one of the two metrics of a resource.
type metric struct {
	name   string
	head   []byte           // name and unit, encoded
	field  protolite.Number // of its data
	tail   []byte           // what its data have after their points
	points []byte           // encoded fields, of complete series
	series []byte           // encoded fields, of the series that is being written
}

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

// write adds a point to the series that is being written. Its window ends with the cycle's. A dialect that
// counts no calls has no name for them.
func (w *writer) write(p *points.Point, start uint64) {
	of := window{start, w.window.end}
	if w.calls.name != "" && p.Calls > 0 {
		w.scratch = appendNumber(w.scratch[:0], p, of)
		w.calls.series = protolite.AppendBytes(w.calls.series, fieldPoints, w.scratch)
	}
	if p.Durations.Spans > 0 {
		if w.scratch = w.scratch[:0]; w.bounds == nil {
			w.scratch = w.appendExponential(w.scratch, p, of)
		} else {
			w.scratch = w.appendExplicit(w.scratch, p, of)
		}
		w.durations.series = protolite.AppendBytes(w.durations.series, fieldPoints, w.scratch)
	}
}

// endSeries adds the series that was written to the request, or to the next one, and reports whether it
// fits in one.
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
	if w.endResource(); w.hasPoints {
		w.emit(&w.request)
	}
	w.request, w.hasPoints = request{body: w.request.body[:0]}, false
}

// endResource writes the metrics of the present resource after those of the ones before.
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

// size is the exact length of the request.
func (w *writer) size() int {
	scope := w.scopeSize()
	if scope == 0 {
		return len(w.request.body)
	}
	return len(w.request.body) +
		protolite.Size(protolite.Size(len(w.resource))+protolite.Size(scope))
}

// scopeSize is the length of the metrics of the present resource, 0 if it has no points.
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
