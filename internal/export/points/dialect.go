package points

import (
	"slices"
	"strconv"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/measure"
)

// Config configures the names of metrics and attributes.
type Config struct {
	Dialect    Dialect    // default: Spanmetrics
	Dimensions Dimensions // not for Datadog
	Instance   string     // collector.instance.id, not for Datadog; optional

	// Labels selects the format of Prometheus: attributes are labels, metrics are named by its rules, and
	// a resource consists only of its service.
	Labels bool
	Graph  *ServiceGraph // series are the edges of this graph instead of spans; optional
	// Bounds are the bounds of classic buckets; optional. Metrics with bounds of their own have those instead.
	Bounds []float64
	// Measures are the attributes of spans whose values have metrics, too. The index of a measure is its number minus
	// one.
	Measures []measure.Measure
}

// dialect returns the configured dialect, with the measures.
func (c *Config) dialect() dialect { return c.withMeasuresOf(c.spanDialect()) }

// spanDialect returns the configured dialect for spans.
func (c *Config) spanDialect() dialect {
	switch {
	case c.Graph != nil:
		return c.Graph
	case c.Dialect == Datadog:
		return datadog{c.Instance}
	}
	spans := spanmetrics{dimensions: c.Dimensions, instance: c.Instance, metric: c.spanMetric()}
	if c.Dialect == Conventions {
		return newConventions(spans, c.format())
	}
	return &spans
}

// spanMetric returns the names of the metrics for calls and durations, in any dialect except Datadog.
func (c *Config) spanMetric() Metric {
	const help = "Durations of spans in seconds."
	switch {
	case !c.Labels:
		return Metric{Calls: "traces.span.metrics.calls", Durations: "traces.span.metrics.duration"}
	case c.Dialect == Tempo:
		return Metric{Calls: "traces_spanmetrics_calls_total", Durations: "traces_spanmetrics_latency", Help: help}
	}
	return Metric{
		Calls: "traces_span_metrics_calls_total", Durations: "traces_span_metrics_duration_seconds", Help: help,
	}
}

// format returns a new format of attributes: Prometheus labels if c.Labels is true, and otherwise OTLP attributes.
// In the dialect of Tempo, the label for service.name is service.
func (c *Config) format() format {
	switch {
	case !c.Labels:
		return &keyValues{}
	case c.Dialect == Tempo:
		return labels{"service.name": "service"}
	}
	return labels{}
}

// Dialect is a convention for the names of metrics and attributes.
type Dialect string

const (
	Spanmetrics Dialect = "spanmetrics" // the Collector's spanmetrics connector
	Datadog     Dialect = "datadog"     // Datadog's tracers; not with Labels
	Tempo       Dialect = "tempo"       // the metrics generator of Grafana Tempo; only with Labels
	Conventions Dialect = "conventions" // OpenTelemetry's semantic conventions for metrics of instrumentations
)

// The names of the attributes for the status of spans.
const (
	statusName   = "status.code"
	topLevelName = "datadog.span.top_level"
)

// instanceName is the attribute that distinguishes daemons.
const instanceName = "collector.instance.id"

// Metric names the metrics of a series: the number of its calls, and a histogram of their durations.
type Metric struct {
	Calls     string    // name of the counter; "" without one
	Durations string    // name of the histogram
	Unit      string    // unit of its values; "" for seconds
	IsMeasure bool      // it counts values of a measure, not spans
	Help      string    // description of the histogram; optional
	Bounds    []float64 // upper bounds of classic buckets in that unit; nil without them
}

// noMetric is the metric of spans that belong to no series.
const noMetric = -1

// dialect selects the metric of spans, and writes the attributes of a series. It is not safe for concurrent use.
type dialect interface {
	// metrics returns all metrics of the dialect. Those without bounds of their own have the configured ones.
	metrics() []Metric

	// metricOf returns the index in metrics of the metric that counts the spans of a key, or noMetric.
	metricOf(key *span.Key) int

	// writeResource writes the attributes of a series' resource.
	writeResource(to *attributes, origin *span.Origin, service string)

	// writeKey writes the attributes that all spans of a key, a set of labels, have. It omits the attributes that
	// writeStatus writes.
	writeKey(to *attributes, origin *span.Origin, key *span.Key)

	// isOK reports whether the spans of a key that have no error have the status OK.
	isOK(origin *span.Origin, key *span.Key) bool

	// writeStatus writes the attributes that differ between spans of the key that writeKey has written last.
	writeStatus(to *attributes, s status)

	// writeOverflow writes the attributes of overflow series, which count the spans beyond the limit on the
	// number of series.
	writeOverflow(to *attributes)
}

// status distinguishes spans of one key.
type status struct {
	isError    bool
	isOK       bool // spans of the key without an error have the status OK
	isTopLevel bool // all spans of the series are top-level
}

// datadog is the dialect of Datadog's tracers, according to their shared specification: one metric,
// with all fields of a key as attributes.
type datadog struct {
	instance string // instance ID of the daemon, only on overflow series
}

func (datadog) metrics() []Metric { return []Metric{{Durations: "traces.span.sdk.metrics.duration"}} }

func (datadog) metricOf(*span.Key) int { return 0 }

func (datadog) writeResource(to *attributes, o *span.Origin, service string) {
	to.writeResource(o, service)
}

func (d datadog) writeOverflow(to *attributes) { to.addOverflow(d.instance) }

// isOK implements dialect.
func (datadog) isOK(*span.Origin, *span.Key) bool { return true }

// writeKey writes all fields of k, the labels of some spans, as attributes.
func (datadog) writeKey(to *attributes, _ *span.Origin, k *span.Key) {
	to.beginList()
	to.reserveNames(statusName, topLevelName)
	to.addText("service.name", k.Service)
	to.addText("span.kind", kindName(k.Kind, spanKinds["internal"]))
	to.addText("span.name", k.Resource)
	to.addText("http.request.method", k.HTTPMethod)
	to.addText("http.route", k.HTTPEndpoint)
	to.addText("rpc.response.status_code", grpcStatus(k.GRPCStatus))
	if k.HTTPStatus != 0 {
		to.addNumber("http.response.status_code", int64(k.HTTPStatus))
	}
	to.addText("datadog.operation.name", k.Operation)
	to.addText("datadog.span.type", k.Type)
	to.addText("datadog.svc_src", k.ServiceSource)
	if k.Synthetics {
		to.addText("datadog.origin", "synthetics")
	}
	if k.TraceRoot != span.TraceRootNotSet {
		to.addFlag("datadog.is_trace_root", k.TraceRoot == span.TraceRootTrue)
	}
	to.addTexts("datadog.peer_tags", k.PeerTags)
	for _, text := range k.AdditionalTags {
		if name, value, isTag := strings.Cut(text, ":"); isTag {
			to.addText(name, value)
		}
	}
}

// writeStatus writes the status code, and whether the spans are top-level.
func (datadog) writeStatus(to *attributes, s status) {
	code := statusOK
	if s.isError {
		code = statusError
	}
	to.addText(statusName, code)
	to.addFlag(topLevelName, s.isTopLevel)
}

// spanmetrics is the dialect of the Collector's spanmetrics connector, for spans converted by its
// receiver for Datadog traces: that derives a span's name, kind and service from operation,
// resource, type and base service. Spans of OpenTelemetry's SDKs keep their names.
type spanmetrics struct {
	dimensions Dimensions
	instance   string // instance ID of the daemon; "" omits it
	metric     Metric
	tags       tagList
}

func (d *spanmetrics) metrics() []Metric { return []Metric{d.metric} }

func (*spanmetrics) metricOf(*span.Key) int { return 0 }

func (*spanmetrics) writeResource(to *attributes, o *span.Origin, service string) {
	to.writeResource(o, service)
}

func (d *spanmetrics) writeOverflow(to *attributes) { to.addOverflow(d.instance) }

// isOK implements dialect. Only spans that were received over OTLP can have the status OK.
func (*spanmetrics) isOK(origin *span.Origin, k *span.Key) bool {
	_, isOTLP := origin.OTLP()
	return isOTLP && slices.Contains(k.AdditionalTags, span.StatusOK)
}

// writeKey writes the labels in k as attributes: first those that every series has, such as the name and the kind
// of the spans, and then the configured dimensions.
func (d *spanmetrics) writeKey(to *attributes, origin *span.Origin, k *span.Key) {
	_, isOTLP := origin.OTLP()
	to.beginList()
	to.reserveNames(statusName) // no dimension can have this name, because writeStatus uses it
	to.addText("service.name", serviceName(origin, k))
	if isOTLP {
		to.addText("span.name", k.Resource)
		to.addText("span.kind", kindName(k.Kind, kindUnspecified))
	} else {
		to.addText("span.name", spanName(k))
		to.addText("span.kind", spanKind(k))
	}
	to.addText(instanceName, d.instance)
	d.writeFieldDimensions(to, k) // such as http.route
	d.writeTagDimensions(to, k, d.isOK(origin, k))
	d.writeNamedDimensions(to, origin, k)
}

// writeFieldDimensions writes those fields of a key that are configured as dimensions.
func (d *spanmetrics) writeFieldDimensions(to *attributes, k *span.Key) {
	d.addText(to, "http.request.method", k.HTTPMethod)
	d.addText(to, "http.route", k.HTTPEndpoint)
	if k.HTTPStatus != 0 && d.dimensions.has("http.response.status_code") {
		to.addNumber("http.response.status_code", int64(k.HTTPStatus))
	}
	if k.GRPCStatus != "" && d.dimensions.has("rpc.grpc.status_code") {
		if code, err := strconv.ParseInt(k.GRPCStatus, 10, 64); err == nil {
			to.addNumber("rpc.grpc.status_code", code)
		}
	}
	d.addText(to, resourceDimension, k.Resource)
}

// writeTagDimensions writes those tags of k that are configured as dimensions. If isOK is true, it omits the tag for
// the status OK, which writeStatus writes.
func (d *spanmetrics) writeTagDimensions(to *attributes, k *span.Key, isOK bool) {
	d.tags = d.tags[:0].add(k.PeerTags, &d.dimensions)
	d.tags = d.tags.add(k.AdditionalTags, &d.dimensions)
	if isOK {
		d.tags = slices.DeleteFunc(d.tags, tag.isStatusOK)
	}
	d.tags.write(to)
}

// writeNamedDimensions writes the dimensions that the operator has included by name, unless they are written
// already. An old name, such as http.method, gets the value that k has for the current name. Other values are
// resource attributes of the process that sends the spans.
func (d *spanmetrics) writeNamedDimensions(to *attributes, origin *span.Origin, k *span.Key) {
	for _, name := range d.dimensions.names {
		writeByOldName(to, name, k)
		to.addText(name, resourceAttribute(origin, name))
	}
}

// writeByOldName writes an attribute with an old name of OpenTelemetry's conventions, for example http.method, with
// the value that k has for its current name, http.request.method. It does nothing if k has no such value, or if
// oldName is not an old name.
func writeByOldName(to *attributes, oldName string, k *span.Key) {
	currentName, isOld := currentNames[oldName]
	if !isOld {
		return
	}
	switch currentName {
	case "http.request.method":
		to.addText(oldName, k.HTTPMethod)
	case "http.response.status_code":
		if k.HTTPStatus != 0 {
			to.addNumber(oldName, int64(k.HTTPStatus))
		}
	default: // k has no field for other attributes, only tags
		for _, text := range k.PeerTags {
			if name, value, _ := strings.Cut(text, ":"); name == currentName {
				to.addText(oldName, value)
			}
		}
	}
}

// addText adds an attribute with a text, if it is configured as a dimension.
func (d *spanmetrics) addText(to *attributes, name, value string) {
	if d.dimensions.has(name) {
		to.addText(name, value)
	}
}

// writeStatus writes the status code.
func (d *spanmetrics) writeStatus(to *attributes, s status) {
	code := statusUnset
	switch {
	case s.isError:
		code = statusError
	case s.isOK:
		code = statusOK
	}
	to.addText(statusName, code)
}

// spanName returns the name that the Collector's receiver for Datadog traces gives a span. For most spans this is
// the operation. Spans of some HTTP libraries are named by their method and route, and others by their resource or
// RPC method.
func spanName(k *span.Key) string {
	switch k.Operation {
	case "servlet.request", "http.request", "web.request":
		if k.HTTPMethod != "" {
			return strings.TrimSuffix(k.HTTPMethod+" "+k.HTTPEndpoint, " ")
		}
		firstWord, _, _ := strings.Cut(k.Resource, " ")
		if isHTTPMethod(firstWord) {
			return k.Resource // a method and a route
		}
	case "spring.handler":
		return k.Resource
	case "grpc.server", "grpc.client":
		method := strings.TrimPrefix(k.Resource, "/")
		hasService := strings.Contains(method, "/") // as in service/method
		if hasService {
			return method
		}
	}
	return k.Operation
}

func isHTTPMethod(word string) bool {
	switch word {
	case "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH":
		return true
	}
	return false
}

// spanKind returns the kind that the Collector's receiver for Datadog traces gives a span with the labels in k. Spans
// of Spring handlers are internal. For other spans, it is the kind in k. If k contains no kind, the type of the span
// determines it: web spans are server spans, http spans are client spans, and the kind of others is unspecified.
func spanKind(k *span.Key) string {
	if k.Operation == "spring.handler" { // runs within the span of the HTTP server
		return spanKinds["internal"]
	}
	kindOfType := kindUnspecified
	switch k.Type {
	case "web":
		kindOfType = spanKinds["server"]
	case "http":
		kindOfType = spanKinds["client"]
	}
	return kindName(k.Kind, kindOfType)
}
