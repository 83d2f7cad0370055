package points

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/measure"
	"github.com/spanstatsd/spanstatsd/internal/span/semconv"
)

// conventions is the dialect of OpenTelemetry's semantic conventions: the metrics that instrumentations of SDKs record,
// such as http.server.request.duration. Spans without such a metric are in the metrics of the dialect spanmetrics.
type conventions struct {
	spanmetrics
	format  format
	valueOf func(attribute string) string // returns an attribute of key, or ""
	omitted []int                         // indexes in semconv.Metrics of metrics that count no spans

	// The last key that was read, and its parts.
	key        *span.Key
	kind       string  // kind of its spans
	attributes tagList // its tags, with OpenTelemetry's names
	metric     int     // index in semconv.Metrics, or semconv.NoMetric

	// The attribute error.type of failed spans with the last key that was written. It is "" if all spans with this key have
	// the same error type, which the key contains.
	errorTypeOfFailed string
}

// newConventions returns a dialect that writes spans without a metric of their own as others does.
func newConventions(others spanmetrics, f format) *conventions {
	d := &conventions{spanmetrics: others, format: f}
	d.valueOf = d.attributeOfKey
	return d
}

const (
	errorTypeName  = "error.type"
	rpcStatusName  = "rpc.response.status_code"
	otherErrorType = "_OTHER" // error type without further information
	otherMethod    = "_OTHER" // HTTP method that the conventions do not know
)

// metrics implements dialect. The first one is for spans without a metric of their own.
func (d *conventions) metrics() []Metric {
	all := d.spanmetrics.metrics()
	for i := range semconv.Metrics {
		m := &semconv.Metrics[i]
		all = append(all, Metric{Durations: d.format.metricName(m.Name, "seconds"), Help: m.Help, Bounds: m.Bounds})
	}
	return all
}

// metricOf implements dialect.
func (d *conventions) metricOf(k *span.Key) int {
	d.read(k)
	return 1 + d.metric
}

// read reads the labels in k.
func (d *conventions) read(k *span.Key) {
	d.key = k
	d.attributes = d.attributes[:0]
	for _, tags := range [...][]string{k.PeerTags, k.AdditionalTags} {
		for _, text := range tags {
			name, value, _ := strings.Cut(text, ":")
			name = attributeName(name)
			d.attributes = append(d.attributes, tag{name, value})
			if currentName, isOld := currentNames[name]; isOld { // as in spans of Datadog's tracers
				d.attributes = append(d.attributes, tag{currentName, value})
			}
		}
	}
	d.kind = strings.ToLower(strings.TrimPrefix(spanKind(k), "SPAN_KIND_"))
	d.metric = semconv.MetricOf(d.kind, d.valueOf)
	if slices.Contains(d.omitted, d.metric) {
		d.metric = semconv.NoMetric
	}
}

// omitMetricsOf omits the metrics of the conventions that have the same name as the metric of a measure. Otherwise,
// both the duration of a span and its value of the measure would be counted under this name. The spans of omitted
// metrics are counted like spans without a metric of their own.
func (d *conventions) omitMetricsOf(measures []measure.Measure) {
	for i := range semconv.Metrics {
		name := semconv.Metrics[i].Name
		nameInPrometheus := prometheusName(name, "seconds")
		hasSameName := func(m measure.Measure) bool {
			return m.Name == name || prometheusNameOf(&m) == nameInPrometheus
		}
		if slices.ContainsFunc(measures, hasSameName) {
			d.omitted = append(d.omitted, i)
		}
	}
}

// writeKey implements dialect. The labels of Prometheus and the resource of OTLP contain the service already.
func (d *conventions) writeKey(to *attributes, origin *span.Origin, k *span.Key) {
	d.read(k)
	if d.metric == semconv.NoMetric {
		d.spanmetrics.writeKey(to, origin, k)
		return
	}
	to.beginList()
	to.reserveNames("service.name", errorTypeName)
	responseStatus := ""
	for _, name := range semconv.Metrics[d.metric].Attributes {
		if !d.dimensions.has(name) {
			continue
		}
		value := d.metricAttribute(name)
		d.write(to, name, value)
		if name == rpcStatusName || name == "db.response.status_code" {
			responseStatus = value
		}
	}
	for _, name := range d.dimensions.names { // in addition to those of the conventions
		writeByOldName(to, name, k)
		d.write(to, name, cmp.Or(d.valueOf(name), resourceAttribute(origin, name)))
	}
	to.addText(instanceName, d.instance)
	d.writeErrorType(to, responseStatus)
}

// writeErrorType writes the attribute error.type if all spans of the current key have one. Otherwise only failed spans
// have it, and writeStatus writes it later: the response status of the RPC or the database, or otherErrorType.
func (d *conventions) writeErrorType(to *attributes, responseStatus string) {
	d.errorTypeOfFailed = ""
	if !d.dimensions.has(errorTypeName) {
		return
	}
	typeOfFailed := otherErrorType
	isErrorStatus := responseStatus != "" && responseStatus != "OK"
	if isErrorStatus {
		typeOfFailed = responseStatus
	}
	typeOfKey := d.errorType()
	// If the key has the type that writeStatus writes, only writeStatus writes it. So failed spans of keys with and
	// without this type have the same attributes, and are in one series.
	if typeOfKey == "" || typeOfKey == typeOfFailed {
		d.errorTypeOfFailed = typeOfFailed
		return
	}
	to.releaseNames() // permits error.type, which writeKey has reserved
	to.addText(errorTypeName, typeOfKey)
}

// isOK implements dialect. The metrics of the conventions have no status.
func (d *conventions) isOK(origin *span.Origin, k *span.Key) bool {
	return d.metric == semconv.NoMetric && d.spanmetrics.isOK(origin, k)
}

// writeStatus implements dialect.
func (d *conventions) writeStatus(to *attributes, s status) {
	switch {
	case d.metric == semconv.NoMetric:
		d.spanmetrics.writeStatus(to, s)
	case s.isError:
		to.addText(errorTypeName, d.errorTypeOfFailed)
	}
}

// write adds an attribute to the list, with an integer if the conventions define one.
func (*conventions) write(to *attributes, name, value string) {
	switch name {
	case "http.response.status_code", "server.port", "network.peer.port":
		if number, err := strconv.ParseInt(value, 10, 64); err == nil {
			to.addNumber(name, number)
			return
		}
	}
	to.addText(name, value)
}

// metricAttribute returns the value of an attribute in the metric of the current key, or "".
func (d *conventions) metricAttribute(name string) string {
	value := d.valueOf(name)
	switch name {
	case "http.request.method":
		return knownMethod(value)
	case "network.protocol.name":
		if value == "http" { // the conventions leave out the default
			return ""
		}
	case "network.protocol.version":
		return protocolVersion(value)
	case "rpc.method":
		return d.rpcMethod(value)
	case "messaging.operation.name":
		return cmp.Or(value, semconv.MessagingOperation(d.valueOf))
	}
	return value
}

// protocolVersion returns a version of HTTP as in the conventions. Older ones have 2.0 and 3.0 for HTTP/2 and HTTP/3.
func protocolVersion(version string) string {
	switch version {
	case "2.0":
		return "2"
	case "3.0":
		return "3"
	}
	return version
}

// rpcMethod returns the full name of a method, such as shop.Carts/Get. In older conventions, method is only Get, and
// the attribute rpc.service is shop.Carts.
func (d *conventions) rpcMethod(method string) string {
	service := d.valueOf("rpc.service")
	isFullName := strings.Contains(method, "/")
	if isFullName || method == "" || service == "" {
		return method
	}
	return service + "/" + method
}

// attributeOfKey returns the value of an attribute of the current key, or "".
func (d *conventions) attributeOfKey(name string) string {
	switch name {
	case "http.request.method":
		return d.key.HTTPMethod
	case "http.route":
		return d.key.HTTPEndpoint
	case "http.response.status_code":
		if d.key.HTTPStatus == 0 {
			return ""
		}
		return strconv.FormatUint(uint64(d.key.HTTPStatus), 10)
	case rpcStatusName:
		if status := grpcStatus(d.key.GRPCStatus); status != "" {
			return status
		}
	}
	for _, attribute := range d.attributes {
		if attribute.name == name {
			return attribute.value
		}
	}
	return ""
}

// errorType returns the error type that all spans with the current key have: the attribute error.type, or an HTTP
// status that is an error. It returns "" if the key has neither.
func (d *conventions) errorType() string {
	value := d.valueOf(errorTypeName)
	if value != "" && value != otherErrorType { // an HTTP status says more than otherErrorType
		return value
	}
	minErrorStatus := http.StatusBadRequest
	if d.kind == "server" {
		minErrorStatus = http.StatusInternalServerError
	}
	if int(d.key.HTTPStatus) >= minErrorStatus {
		return d.valueOf("http.response.status_code")
	}
	return ""
}

// knownMethod returns an HTTP method in upper case, or otherMethod if the conventions do not know it.
func knownMethod(method string) string {
	method = strings.ToUpper(method)
	if method == "" || isHTTPMethod(method) || method == "QUERY" {
		return method
	}
	return otherMethod
}
