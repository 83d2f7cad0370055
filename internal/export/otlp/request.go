package otlp

import (
	"cmp"
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
	values      uint64   // values of measures; 0 for running totals
	undelivered []uint64 // spans that the receiver may not have received yet, for each series of running totals
}

// writer writes the points of series into requests, none longer than limit. For each resource, the caller calls
// beginResource, and then for each series of the resource, writePoint for each point, and endSeries. After the last
// series, it calls endRequest. A series whose points do not fit in a request begins the next request.
type writer struct {
	limit  int
	emit   func(*request)
	window window // window of the current cycle

	scope   []byte // scope of all metrics, encoded as a field
	metrics []metricPair

	request   request // the body contains the resources before the current one
	resource  []byte  // attributes of the current resource
	hasSeries bool    // the request contains at least one series
	scratch   []byte  // the point that is being written
}

// metricPair contains the metrics of the series of one points.Metric.
type metricPair struct{ calls, durations metric }

// metric is a metric of a resource.
type metric struct {
	name           string
	head           []byte           // encoded fields before the points, such as name and unit
	dataField      protolite.Number // number of the field with the points, which depends on the type of the metric
	dataTail       []byte           // encoded fields after the points, such as temporality
	bounds         []float64        // bounds of explicit buckets, as sent; nil for exponential buckets and counters
	isOfSpans      bool             // the values are durations of spans in seconds, not values of a measure
	unitsPerSecond float64          // 1000 for durations that are sent in milliseconds, otherwise 1
	points         []byte           // encoded points of complete series
	currentSeries  []byte           // encoded points of the current series

	includesZero bool // a counter of 0 is written
}

// newWriter returns a writer of requests with the given metrics, whose durations are in seconds. All have the given
// temporality. The instrumentation scope has the given version, unless it is empty.
func newWriter(metrics []points.Metric, version string, temporality uint64) *writer {
	scope := protolite.AppendBytes(nil, fieldScopeName, "spanstatsd")
	if version != "" {
		scope = protolite.AppendBytes(scope, fieldScopeVersion, strings.ToValidUTF8(version, "\uFFFD"))
	}
	w := &writer{
		scope: protolite.AppendBytes(nil, fieldScope, scope),
	}
	for _, m := range metrics {
		w.metrics = append(w.metrics, metricPair{newCounter(m.Calls, temporality), newHistogram(&m, temporality)})
	}
	return w
}

// addTotal adds a counter that is cumulative, and written also if it is 0. It returns the index of its metric.
func (w *writer) addTotal(name string) (metric int) {
	counter := newCounter(name, cumulative)
	counter.includesZero = true
	w.metrics = append(w.metrics, metricPair{calls: counter})
	return len(w.metrics) - 1
}

// newCounter returns the metric for calls.
func newCounter(name string, temporality uint64) metric {
	tail := protolite.AppendVarint(nil, fieldTemporality, temporality)
	return metric{
		name:      name,
		head:      protolite.AppendBytes(nil, fieldMetricName, name),
		dataField: fieldMetricSum,
		dataTail:  protolite.AppendVarint(tail, fieldIsMonotonic, 1),
	}
}

// newHistogram returns the metric for the durations of m: a histogram with explicit buckets if m has bounds, and
// otherwise an exponential one.
func newHistogram(m *points.Metric, temporality uint64) metric {
	dataField := protolite.Number(fieldMetricExponential)
	if m.Bounds != nil {
		dataField = fieldMetricHistogram
	}
	name := m.Durations // the name of the histogram
	return metric{
		name:      name,
		head:      histogramHead(name, m.Help, cmp.Or(m.Unit, seconds)),
		dataField: dataField,
		dataTail:  protolite.AppendVarint(nil, fieldTemporality, temporality),
		bounds:    m.Bounds,

		isOfSpans: !m.IsMeasure, unitsPerSecond: 1,
	}
}

// useMilliseconds changes the unit of durations of spans from seconds to milliseconds: in the bounds of buckets, in sums
// and in exemplars. It does not change measures, because their units are configured, or defined by conventions.
func (w *writer) useMilliseconds() {
	for i := range w.metrics {
		durations := &w.metrics[i].durations
		if !durations.isOfSpans {
			continue
		}
		durations.unitsPerSecond = 1000
		const noDescription = ""
		durations.head = histogramHead(durations.name, noDescription, "ms")
		durations.bounds = inMilliseconds(durations.bounds)
	}
}

// inMilliseconds converts bounds from seconds to milliseconds. It rounds them to picoseconds, so that 0.035 s become
// exactly 35 ms.
func inMilliseconds(bounds []float64) []float64 {
	const picosPerSecond, picosPerMilli = 1e12, 1e9
	converted := slices.Clone(bounds)
	for i, seconds := range converted {
		converted[i] = math.Round(seconds*picosPerSecond) / picosPerMilli
	}
	return converted
}

// seconds is the unit of durations.
const seconds = "s"

// histogramHead encodes the name, the description and the unit of a histogram.
func histogramHead(name, description, unit string) []byte {
	head := protolite.AppendBytes(nil, fieldMetricName, name)
	if description != "" {
		head = protolite.AppendBytes(head, fieldMetricDescription, description)
	}
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

// writePoint encodes p as two data points, one for calls and one for durations, and appends each to the current series
// of its metric. The data points cover the period from start to the end of w.window. writePoint omits the durations if
// p contains none, and the number of calls if includesCalls returns false.
func (w *writer) writePoint(p *points.Point, start uint64) {
	period := window{start, w.window.end}
	pair := &w.metrics[p.Metric]
	calls, durations := &pair.calls, &pair.durations
	if calls.includesCalls(p) {
		w.scratch = appendCalls(w.scratch[:0], p, period)
		calls.currentSeries = protolite.AppendBytes(calls.currentSeries, fieldPoints, w.scratch)
	}
	if p.Durations.Spans > 0 {
		w.scratch = durations.appendHistogram(w.scratch[:0], p, period)
		durations.currentSeries = protolite.AppendBytes(durations.currentSeries, fieldPoints, w.scratch)
	}
}

// includesCalls reports whether the number of calls in p is written. The metric can be disabled, and it can omit
// points with the value 0.
func (m *metric) includesCalls(p *points.Point) bool {
	if m.name == "" {
		return false
	}
	return p.Calls > 0 || m.includesZero
}

// appendHistogram appends p to b as the body of a data point of a histogram.
func (m *metric) appendHistogram(b []byte, p *points.Point, period window) []byte {
	if m.bounds == nil {
		return m.appendExponential(b, p, period)
	}
	return m.appendExplicit(b, p, period)
}

// endSeries adds the points of the current series, which writePoint has encoded, to the current request. If the
// request has too little space left, it completes the request, and adds the points to a new one. It returns false,
// and discards the points, if they do not fit in an empty request.
func (w *writer) endSeries() (fits bool) {
	fits = w.addSeries()
	if !fits && w.hasSeries { // other series use space in the request
		w.endRequest()
		fits = w.addSeries() // to the next request, which is empty
	}
	for m := range w.allMetrics {
		m.currentSeries = m.currentSeries[:0]
	}
	return fits
}

// allMetrics iterates over the metrics of a resource.
func (w *writer) allMetrics(yield func(*metric) bool) {
	for i := range w.metrics {
		pair := &w.metrics[i]
		if !yield(&pair.calls) || !yield(&pair.durations) {
			return
		}
	}
}

// addSeries adds the points of the current series to the current request. It returns false, and adds nothing, if the
// request would then exceed w.limit.
func (w *writer) addSeries() (fits bool) {
	for m := range w.allMetrics {
		m.points = append(m.points, m.currentSeries...)
	}
	if w.size() <= w.limit {
		w.hasSeries = true
		return true
	}
	for m := range w.allMetrics { // remove the points again
		m.points = m.points[:len(m.points)-len(m.currentSeries)]
	}
	return false
}

// endRequest passes the request to emit, unless it is empty, and begins the next one.
func (w *writer) endRequest() {
	w.endResource()
	if w.hasSeries {
		w.emit(&w.request)
	}
	w.request = request{body: w.request.body[:0]}
	w.hasSeries = false
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
	for m := range w.allMetrics {
		b = m.movePoints(b)
	}
	w.request.body = b
}

// size returns the exact length of the request.
func (w *writer) size() int {
	scopeMetricsSize := w.scopeMetricsSize()
	if scopeMetricsSize == 0 {
		return len(w.request.body)
	}
	return len(w.request.body) + protolite.FieldSize(w.resourceMetricsSize(scopeMetricsSize))
}

// resourceMetricsSize returns the length of the ResourceMetrics message of the current resource, given the length of
// the ScopeMetrics message in it.
func (w *writer) resourceMetricsSize(scopeMetricsSize int) int {
	return protolite.FieldSize(len(w.resource)) + protolite.FieldSize(scopeMetricsSize)
}

// scopeMetricsSize returns the length of the ScopeMetrics message with the points of the current resource. If there
// are no points, it returns 0, because the message is then omitted.
func (w *writer) scopeMetricsSize() (size int) {
	for m := range w.allMetrics {
		if len(m.points) > 0 {
			size += protolite.FieldSize(m.messageSize())
		}
	}
	if size > 0 {
		size += len(w.scope)
	}
	return size
}

// messageSize returns the length of the encoded Metric message, without the tag and the length that precede it.
func (m *metric) messageSize() int {
	return len(m.head) + protolite.FieldSize(m.dataSize())
}

// dataSize returns the length of the encoded Sum or histogram, the message with the points inside the Metric message.
func (m *metric) dataSize() int { return len(m.points) + len(m.dataTail) }

// movePoints appends the metric and its points to body, and removes the points from m. It returns the extended
// body, or the same body if m has no points.
func (m *metric) movePoints(body []byte) []byte {
	if len(m.points) == 0 {
		return body
	}
	body = protolite.AppendHead(body, fieldMetrics, m.messageSize())
	body = append(body, m.head...)
	body = protolite.AppendHead(body, m.dataField, m.dataSize())
	body = append(body, m.points...)
	body = append(body, m.dataTail...)
	m.points = m.points[:0]
	return body
}
