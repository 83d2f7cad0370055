package points

import (
	"slices"
	"strconv"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Config configures the names of points.
type Config struct {
	Dialect    Dialect    // Spanmetrics if empty
	Dimensions Dimensions // of Spanmetrics
	Instance   string     // collector.instance.id of Spanmetrics; none if empty

	// Labels makes resources and attributes labels of Prometheus, and names metrics as it does. A resource
	// is its service alone.
	Labels bool
	Bounds []float64 // of classic buckets, which sketch.CheckBounds accepts; none if empty
}

// dialect makes the one that is configured.
func (c *Config) dialect() dialect {
	if c.Dialect == Datadog {
		return datadog{c.Instance}
	}
	return &spanmetrics{dimensions: c.Dimensions, instance: c.Instance, names: c.metrics()}
}

// metrics are the names of those that count spans and durations, in any dialect but Datadog's.
func (c *Config) metrics() [2]string {
	switch {
	case !c.Labels:
		return [2]string{"traces.span.metrics.calls", "traces.span.metrics.duration"}
	case c.Dialect == Tempo:
		return [2]string{"traces_spanmetrics_calls_total", "traces_spanmetrics_latency"}
	}
	return [2]string{"traces_span_metrics_calls_total", "traces_span_metrics_duration_seconds"}
}

// format is that of attributes. Tempo has a name of its own for the service.
func (c *Config) format() format {
	switch {
	case !c.Labels:
		return &keyValues{}
	case c.Dialect == Tempo:
		return labels{"service.name": "service"}
	}
	return labels{}
}

// Dialect is what metrics and their attributes are called.
type Dialect string

const (
	Spanmetrics Dialect = "spanmetrics" // as the Collector's connector of that name
	Datadog     Dialect = "datadog"     // as Datadog's tracers; of attributes
	Tempo       Dialect = "tempo"       // as the metrics generator of Grafana's Tempo; of labels
)

// The names that the attributes of an outcome have.
const (
	statusName   = "status.code"
	topLevelName = "datadog.span.top_level"
)

// instanceName is the attribute that tells daemons apart.
const instanceName = "collector.instance.id"

// dialect writes the series of a key. It has one user at a time.
type dialect interface {
	// metrics are the names of the metrics for calls and durations. If the first is empty, the count of
	// durations is that of calls.
	metrics() (calls, durations string)

	// key writes the attributes that all spans of a key have, none with a name that outcome uses. It
	// reports whether those without an error have the status OK.
	key(to *attributes, origin *span.Origin, key *span.Key) (isOK bool)

	// outcome writes the attributes that only some spans of a key have.
	outcome(to *attributes, o outcome)

	// instanceID is the daemon's, "" if it is no attribute.
	instanceID() string
}

// outcome is what tells spans of one key apart.
type outcome struct {
	isError    bool
	isOK       bool // the key's spans without an error have the status OK
	isTopLevel bool // all spans with the attributes of the key are top-level
}

// datadog is the dialect of Datadog's tracers, by the contract that they share: one
// metric, whose attributes are all that a key has.
type datadog struct {
	instance string // of the daemon, which only overflow series have
}

func (datadog) metrics() (calls, durations string) { return "", "traces.span.sdk.metrics.duration" }

func (d datadog) instanceID() string { return d.instance }

func (datadog) key(to *attributes, _ *span.Origin, k *span.Key) (isOK bool) {
	to.begin(statusName, topLevelName)
	to.text("service.name", k.Service)
	to.text("span.kind", kindNamed(k.Kind, spanKinds["internal"]))
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

func (datadog) outcome(to *attributes, o outcome) {
	status := statusOK
	if o.isError {
		status = statusError
	}
	to.text(statusName, status)
	to.flag(topLevelName, o.isTopLevel)
}

// spanmetrics is the dialect of the Collector's connector of that name, for spans that its
// receiver for Datadog's traces would have made of ours: a span's name, kind and service
// are what that makes of operation, resource, type and base service. Spans of OpenTelemetry's
// SDKs are called here what they are called there.
type spanmetrics struct {
	dimensions Dimensions
	instance   string    // of the daemon, "" if it is no attribute
	names      [2]string // of its metrics
	tags       tagList
}

func (d *spanmetrics) metrics() (calls, durations string) { return d.names[0], d.names[1] }

func (d *spanmetrics) instanceID() string { return d.instance }

func (d *spanmetrics) key(to *attributes, origin *span.Origin, k *span.Key) (isOK bool) {
	to.begin(statusName)
	to.text("service.name", service(origin, k))
	_, isOTLP := origin.OTLP()
	if isOTLP {
		to.text("span.name", k.Resource)
		to.text("span.kind", kindNamed(k.Kind, kindUnsaid))
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
	for _, name := range d.dimensions.names { // attributes of the span come first
		addOlder(to, name, k)
		to.text(name, resourceAttribute(origin, name))
	}
	return isOK
}

// addOlder adds a dimension with the older name of an attribute that the key has under its present name.
func addOlder(to *attributes, name string, k *span.Key) {
	switch present := presentNames[name]; present {
	case "":
	case "http.request.method":
		to.text(name, k.HTTPMethod)
	case "http.response.status_code":
		if k.HTTPStatus != 0 {
			to.number(name, int64(k.HTTPStatus))
		}
	default:
		for _, tag := range k.PeerTags {
			if key, value, _ := strings.Cut(tag, ":"); key == present {
				to.text(name, value)
			}
		}
	}
}

func (d *spanmetrics) text(to *attributes, name, value string) {
	if d.dimensions.has(name) {
		to.text(name, value)
	}
}

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

// spanName is the operation, except for those that the receiver names in another way. It takes the name of
// an HTTP request from tags that a key may lack; the resource then is the same.
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

// spanKind is the span's kind, or the one that follows from its type.
func spanKind(k *span.Key) string {
	if k.Operation == "spring.handler" {
		return spanKinds["internal"]
	}
	otherwise := kindUnsaid
	switch k.Type {
	case "web":
		otherwise = spanKinds["server"]
	case "http":
		otherwise = spanKinds["client"]
	}
	return kindNamed(k.Kind, otherwise)
}
