package points

import (
	"slices"
	"strconv"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Config configures the names of metrics and attributes.
type Config struct {
	Dialect    Dialect    // default: Spanmetrics
	Dimensions Dimensions // for Spanmetrics
	Instance   string     // collector.instance.id for Spanmetrics; optional

	// Labels selects the format of Prometheus: attributes are labels, metrics are named by its rules, and
	// a resource consists only of its service.
	Labels bool
	Graph  *ServiceGraph // series are the edges of this graph instead of spans; optional, only with Labels
	Bounds []float64     // bounds of classic buckets; optional
}

// dialect returns the configured dialect.
func (c *Config) dialect() dialect {
	switch {
	case c.Graph != nil:
		return c.Graph
	case c.Dialect == Datadog:
		return datadog{c.Instance}
	}
	return &spanmetrics{dimensions: c.Dimensions, instance: c.Instance, names: c.metrics()}
}

// metrics returns the names of the metrics for calls and durations, in any dialect except Datadog.
func (c *Config) metrics() [2]string {
	switch {
	case !c.Labels:
		return [2]string{"traces.span.metrics.calls", "traces.span.metrics.duration"}
	case c.Dialect == Tempo:
		return [2]string{"traces_spanmetrics_calls_total", "traces_spanmetrics_latency"}
	}
	return [2]string{"traces_span_metrics_calls_total", "traces_span_metrics_duration_seconds"}
}

// format returns the format of attributes. Tempo has another name for the service.
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
)

// The names that the attributes of an outcome have.
const (
	// The names of the attributes for an outcome.
	statusName   = "status.code"
	topLevelName = "datadog.span.top_level"
)

// instanceName is the attribute that distinguishes daemons.
const instanceName = "collector.instance.id"

// dialect writes the attributes of a key's series. It is not safe for concurrent use.
type dialect interface {
	// metrics returns the names of the metrics for calls and durations. If the first is empty, there is no
	// metric for calls.
	metrics() (calls, durations string)

	// includes reports whether the spans of a key belong to a series.
	includes(key *span.Key) bool

	// resource writes the attributes of a series' resource.
	resource(to *attributes, origin *span.Origin, service string)

	// key writes the attributes that all spans of a key have, except those that outcome writes. It reports
	// whether spans without an error have the status OK.
	key(to *attributes, origin *span.Origin, key *span.Key) (isOK bool)

	// outcome writes the attributes that differ between spans of a key.
	outcome(to *attributes, o outcome)

	// overflow writes the attributes of overflow series, which count spans that exceed the limit on
	// series.
	overflow(to *attributes)
}

// outcome distinguishes spans of one key.
type outcome struct {
	isError    bool
	isOK       bool // spans of the key without an error have the status OK
	isTopLevel bool // all spans of the series are top-level
}

// datadog is the dialect of Datadog's tracers, according to their shared specification: one metric,
// with all fields of a key as attributes.
type datadog struct {
	instance string // instance ID of the daemon, only on overflow series
}

func (datadog) metrics() (calls, durations string) { return "", "traces.span.sdk.metrics.duration" }

func (datadog) includes(*span.Key) bool { return true }

func (datadog) resource(to *attributes, o *span.Origin, service string) { to.resource(o, service) }

func (d datadog) overflow(to *attributes) { to.overflow(d.instance) }

// key implements dialect. All fields of the key are attributes.
func (datadog) key(to *attributes, _ *span.Origin, k *span.Key) (isOK bool) {
	to.begin(statusName, topLevelName)
	to.text("service.name", k.Service)
	to.text("span.kind", kindName(k.Kind, spanKinds["internal"]))
	to.text("span.name", k.Resource)
	to.text("http.request.method", k.HTTPMethod)
	to.text("http.route", k.HTTPEndpoint)
	to.text("rpc.response.status_code", grpcStatus(k.GRPCStatus))
	if k.HTTPStatus != 0 {
		to.number("http.response.status_code", int64(k.HTTPStatus))
	}
	to.text("datadog.operation.name", k.Operation)
	to.text("datadog.span.type", k.Type)
	to.text("datadog.svc_src", k.ServiceSource)
	if k.Synthetics {
		to.text("datadog.origin", "synthetics")
	}
	if k.TraceRoot != span.TraceRootNotSet {
		to.flag("datadog.is_trace_root", k.TraceRoot == span.TraceRootTrue)
	}
	to.texts("datadog.peer_tags", k.PeerTags)
	for _, tag := range k.AdditionalTags {
		if name, value, isTag := strings.Cut(tag, ":"); isTag {
			to.text(name, value)
		}
	}
	return true
}

// outcome implements dialect.
func (datadog) outcome(to *attributes, o outcome) {
	status := statusOK
	if o.isError {
		status = statusError
	}
	to.text(statusName, status)
	to.flag(topLevelName, o.isTopLevel)
}

// spanmetrics is the dialect of the Collector's spanmetrics connector, for spans converted by its
// receiver for Datadog traces: that derives a span's name, kind and service from operation,
// resource, type and base service. Spans of OpenTelemetry's SDKs keep their names.
type spanmetrics struct {
	dimensions Dimensions
	instance   string    // instance ID of the daemon; "" omits it
	names      [2]string // names of the metrics
	tags       tagList
}

func (d *spanmetrics) metrics() (calls, durations string) { return d.names[0], d.names[1] }

func (*spanmetrics) includes(*span.Key) bool { return true }

func (*spanmetrics) resource(to *attributes, o *span.Origin, service string) { to.resource(o, service) }

func (d *spanmetrics) overflow(to *attributes) { to.overflow(d.instance) }

// key implements dialect. It writes the four attributes that every series has, then the dimensions:
// first those of the span, then those of the resource.
func (d *spanmetrics) key(to *attributes, origin *span.Origin, k *span.Key) (isOK bool) {
	to.begin(statusName)
	to.text("service.name", serviceName(origin, k))
	_, isOTLP := origin.OTLP()
	if isOTLP {
		to.text("span.name", k.Resource)
		to.text("span.kind", kindName(k.Kind, kindUnspecified))
	} else {
		to.text("span.name", spanName(k))
		to.text("span.kind", spanKind(k))
	}
	to.text(instanceName, d.instance)
	d.text(to, "http.request.method", k.HTTPMethod)
	d.text(to, "http.route", k.HTTPEndpoint)
	if k.HTTPStatus != 0 && d.dimensions.has("http.response.status_code") {
		to.number("http.response.status_code", int64(k.HTTPStatus))
	}
	if k.GRPCStatus != "" && d.dimensions.has("rpc.grpc.status_code") {
		if code, err := strconv.ParseInt(k.GRPCStatus, 10, 64); err == nil {
			to.number("rpc.grpc.status_code", code)
		}
	}
	d.text(to, resourceDimension, k.Resource)
	d.tags = d.tags[:0].add(k.PeerTags, &d.dimensions).add(k.AdditionalTags, &d.dimensions)
	if isOK = isOTLP && slices.Contains(k.AdditionalTags, span.StatusOK); isOK {
		d.tags = slices.DeleteFunc(d.tags, tag.isStatus)
	}
	d.tags.write(to)
	for _, name := range d.dimensions.names { // after the attributes of the span, which take precedence
		addByOldName(to, name, k)
		to.text(name, resourceAttribute(origin, name))
	}
	return isOK
}

// addByOldName adds an attribute for a dimension with an old name, if the key has the attribute
// with the current name.
func addByOldName(attrs *attributes, name string, k *span.Key) {
	switch current := currentNames[name]; current {
	case "":
	case "http.request.method":
		attrs.text(name, k.HTTPMethod)
	case "http.response.status_code":
		if k.HTTPStatus != 0 {
			attrs.number(name, int64(k.HTTPStatus))
		}
	default:
		for _, tag := range k.PeerTags {
			if key, value, _ := strings.Cut(tag, ":"); key == current {
				attrs.text(name, value)
			}
		}
	}
}

func (d *spanmetrics) text(to *attributes, name, value string) {
	if d.dimensions.has(name) {
		to.text(name, value)
	}
}

// outcome implements dialect.
func (d *spanmetrics) outcome(to *attributes, o outcome) {
	status := statusUnset
	switch {
	case o.isError:
		status = statusError
	case o.isOK:
		status = statusOK
	}
	to.text(statusName, status)
}

// spanName returns the operation, or the name that the Collector's receiver derives for certain
// operations. The receiver takes the name of an HTTP request from tags that a key may lack; the
// resource is the same then.
func spanName(k *span.Key) string {
	switch k.Operation {
	case "servlet.request", "http.request", "web.request":
		if k.HTTPMethod != "" {
			return strings.TrimSuffix(k.HTTPMethod+" "+k.HTTPEndpoint, " ")
		}
		if method, _, _ := strings.Cut(k.Resource, " "); isHTTPMethod(method) {
			return k.Resource
		}
	case "spring.handler":
		return k.Resource
	case "grpc.server", "grpc.client":
		if method := strings.TrimPrefix(k.Resource, "/"); strings.Contains(method, "/") {
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

// spanKind returns the kind of a span, or the kind that follows from its type.
func spanKind(k *span.Key) string {
	if k.Operation == "spring.handler" {
		return spanKinds["internal"]
	}
	fallback := kindUnspecified
	switch k.Type {
	case "web":
		fallback = spanKinds["server"]
	case "http":
		fallback = spanKinds["client"]
	}
	return kindName(k.Kind, fallback)
}
