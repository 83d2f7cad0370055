package otlp

import (
	"math"
	"slices"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/export"
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

// writer writes the points of series into requests, none longer than limit. For each resource, the caller calls
// beginResource, and then for each series of the resource, writePoint for each point, and endSeries. After the last
// series, it calls endRequest. A series whose points do not fit in a request begins the next request.
type writer struct {
	limit        int
	emit         func(*request)
	window       window    // of the current cycle
	bounds       []float64 // bounds of explicit buckets, as sent; nil for exponential buckets
	nanosPerUnit float64   // nanoseconds per unit of durations

	scope            []byte // scope of all metrics, encoded as a field
	calls, durations metric

	request   request // the body contains the resources before the current one
	resource  []byte  // attributes of the current resource
	hasPoints bool    // the request has at least one complete series
	scratch   []byte  // the point that is being written
}

// metric is one of the two metrics of a resource.
type metric struct {
	name          string
	head          []byte           // encoded name and unit
	dataField     protolite.Number // number of the field with the points, which depends on the type of the metric
	dataTail      []byte           // encoded fields that follow the points
	points        []byte           // encoded points of complete series
	currentSeries []byte           // encoded points of the current series

	includesZero bool // a counter of 0 is written
}

// newWriter returns a writer of requests with two metrics: a counter with the name calls, and exponential histograms
// of durations in seconds with the name durations. Both have the given temporality. The instrumentation scope has
// the given version, unless it is empty.
func newWriter(calls, durations, version string, temporality uint64) *writer {
	scope := protolite.AppendBytes(nil, fieldScopeName, "spanstatsd")
	if version != "" {
		scope = protolite.AppendBytes(scope, fieldScopeVersion, strings.ToValidUTF8(version, "\uFFFD"))
	}
	w := &writer{
		nanosPerUnit: 1e9,
		scope:        protolite.AppendBytes(nil, fieldScope, scope),
	}
	temporalityField := protolite.AppendVarint(nil, fieldTemporality, temporality)
	w.calls = metric{
		name:      calls,
		head:      protolite.AppendBytes(nil, fieldMetricName, calls),
		dataField: fieldMetricSum,
		dataTail:  protolite.AppendVarint(slices.Clone(temporalityField), fieldIsMonotonic, 1),
	}
	w.durations = metric{
		name:      durations,
		head:      metricHead(durations, "s"),
		dataField: fieldMetricHistogram,
		dataTail:  temporalityField,
	}
	return w
}

// useExplicitBuckets changes the durations to histograms with explicit buckets. bounds are the upper bounds of the
// buckets in seconds.
func (w *writer) useExplicitBuckets(bounds []float64) {
	w.bounds = bounds
	w.durations.dataField = fieldMetricExplicit
}

// useMilliseconds changes the unit of explicit buckets, sums and exemplars from seconds to milliseconds. It
// converts w.bounds, so these must be set before. It rounds bounds to picoseconds, so that 0.035 s become exactly
// 35 ms.
func (w *writer) useMilliseconds() {
	const picosPerSecond, picosPerMilli = 1e12, 1e9
	w.durations.head = metricHead(w.durations.name, "ms")
	w.nanosPerUnit = 1e6
	w.bounds = slices.Clone(w.bounds)
	for i, seconds := range w.bounds {
		w.bounds[i] = math.Round(seconds*picosPerSecond) / picosPerMilli
	}
}

// unitsPerSecond returns the number of units of durations in a second.
func (w *writer) unitsPerSecond() float64 { return 1e9 / w.nanosPerUnit }

func metricHead(name, unit string) []byte {
	head := protolite.AppendBytes(nil, fieldMetricName, name)
	return protolite.AppendBytes(head, fieldMetricUnit, unit)
}

// begin prepares for the points of a cycle, one export interval. emit gets each complete request.
func (w *writer) begin(c *export.Cycle, emit func(*request)) {
	w.window = w.window.next(c.Start, c.End)
	w.limit = c.Limit
	w.emit = emit
}

// beginResource begins the metrics of a resource.
func (w *writer) beginResource(resource []byte) {
	w.endResource()
	w.resource = resource
}

// writePoint appends p to the current series of the calls metric and of the durations metric, as data points for the
// period from start to the end of w.window. It omits the durations if p contains none, and the number of calls if
// includesCalls returns false.
func (w *writer) writePoint(p *points.Point, start uint64) {
	period := window{start, w.window.end}
	if w.includesCalls(p) {
		w.scratch = appendCalls(w.scratch[:0], p, period)
		w.calls.currentSeries = protolite.AppendBytes(w.calls.currentSeries, fieldPoints, w.scratch)
	}
	if p.Durations.Spans > 0 {
		w.scratch = w.appendHistogram(w.scratch[:0], p, period)
		w.durations.currentSeries = protolite.AppendBytes(w.durations.currentSeries, fieldPoints, w.scratch)
	}
}

// includesCalls reports whether the number of calls in p is written. The calls metric can be disabled, and it can
// omit points with the value 0.
func (w *writer) includesCalls(p *points.Point) bool {
	if w.calls.name == "" {
		return false
	}
	return p.Calls > 0 || w.calls.includesZero
}

// appendHistogram appends p to b as the body of a data point of the durations metric.
func (w *writer) appendHistogram(b []byte, p *points.Point, period window) []byte {
	if w.bounds == nil {
		return w.appendExponential(b, p, period)
	}
	return w.appendExplicit(b, p, period)
}

// endSeries adds the points of the current series, which writePoint has encoded, to the current request. If the
// request has too little space left, it completes the request, and adds the points to a new one. It returns false,
// and discards the points, if they do not fit in an empty request.
func (w *writer) endSeries() (fits bool) {
	fits = w.addSeries()
	if !fits && w.hasPoints {
		w.endRequest()
		fits = w.addSeries()
	}
	w.calls.currentSeries = w.calls.currentSeries[:0]
	w.durations.currentSeries = w.durations.currentSeries[:0]
	return fits
}

// addSeries adds the points of the current series to the current request. It returns false, and adds nothing, if the
// request would then exceed w.limit.
func (w *writer) addSeries() (fits bool) {
	callsBytes, durationsBytes := len(w.calls.points), len(w.durations.points)
	w.calls.points = append(w.calls.points, w.calls.currentSeries...)
	w.durations.points = append(w.durations.points, w.durations.currentSeries...)
	if w.size() <= w.limit {
		w.hasPoints = true
		return true
	}
	w.calls.points = w.calls.points[:callsBytes] // remove the points again
	w.durations.points = w.durations.points[:durationsBytes]
	return false
}

// endRequest passes the request to emit, unless it is empty, and begins the next one.
func (w *writer) endRequest() {
	w.endResource()
	if w.hasPoints {
		w.emit(&w.request)
	}
	w.request = request{body: w.request.body[:0]}
	w.hasPoints = false
}

// endResource appends the metrics of the current resource to the request, if it has points.
func (w *writer) endResource() {
	scopeMetricsSize := w.scopeMetricsSize()
	if scopeMetricsSize == 0 {
		return
	}
	b := protolite.AppendHead(w.request.body, fieldResourceMetrics, w.resourceMetricsSize(scopeMetricsSize))
	b = protolite.AppendBytes(b, fieldResource, w.resource)
	b = protolite.AppendHead(b, fieldScopeMetrics, scopeMetricsSize)
	b = append(b, w.scope...)
	b = w.calls.movePoints(b)
	b = w.durations.movePoints(b)
	w.request.body = b
}

// size returns the exact length of the request.
func (w *writer) size() int {
	scopeMetricsSize := w.scopeMetricsSize()
	if scopeMetricsSize == 0 {
		return len(w.request.body)
	}
	return len(w.request.body) + protolite.Size(w.resourceMetricsSize(scopeMetricsSize))
}

// resourceMetricsSize returns the length of the ResourceMetrics message of the current resource, given the length of
// the ScopeMetrics message in it.
func (w *writer) resourceMetricsSize(scopeMetricsSize int) int {
	return protolite.Size(len(w.resource)) + protolite.Size(scopeMetricsSize)
}

// scopeMetricsSize returns the length of the ScopeMetrics message with the points of the current resource. If there
// are no points, it returns 0, because the message is then omitted.
func (w *writer) scopeMetricsSize() (size int) {
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

// size returns the length of the Metric message.
func (m *metric) size() int { return len(m.head) + protolite.Size(len(m.points)+len(m.dataTail)) }

// movePoints appends the metric and its points to body, and removes the points from m. It returns the extended
// body, or the same body if m has no points.
func (m *metric) movePoints(body []byte) []byte {
	if len(m.points) == 0 {
		return body
	}
	body = protolite.AppendHead(body, fieldMetrics, m.size())
	body = append(body, m.head...)
	body = protolite.AppendHead(body, m.dataField, len(m.points)+len(m.dataTail))
	body = append(body, m.points...)
	body = append(body, m.dataTail...)
	m.points = m.points[:0]
	return body
}
