package points

import (
	"slices"
	"strconv"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// spanmetrics is the dialect of the Collector's connector of that name, for spans that its
// receiver for Datadog's traces would have made of ours: a span's name, kind and service
// are what that makes of operation, resource, type and base service. Spans of OpenTelemetry's
// SDKs are called here what they are called there.
type spanmetrics struct {
	dimensions Dimensions
	instance   string    // of the daemon, "" where it is no attribute
	names      [2]string // of its metrics
	tags       tagList
	isOK       bool // the spans of the key that was written last have the status OK
}

func (d *spanmetrics) metrics() (calls, durations string) { return d.names[0], d.names[1] }

func (d *spanmetrics) ofInstance() string { return d.instance }

func (d *spanmetrics) key(to *attributes, origin *span.Origin, k *span.Key) {
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
	if d.isOK = isOTLP && slices.Contains(k.AdditionalTags, span.StatusOK); d.isOK {
		d.tags = slices.DeleteFunc(d.tags, tag.isStatus)
	}
	d.tags.write(to)
	for _, name := range d.dimensions.names { // after what the span says itself
		d.older(to, name, k)
		to.text(name, saidBy(origin, name))
	}
}

// older adds a dimension by the older name of an attribute that the key has by its present name.
func (d *spanmetrics) older(to *attributes, name string, k *span.Key) {
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

func (d *spanmetrics) outcome(to *attributes, isError, _ bool) {
	status := statusUnset
	switch {
	case isError:
		status = statusError
	case d.isOK:
		status = statusOK
	}
	to.text(statusName, status)
}

// spanName is the operation, but for those of which the receiver knows more. It takes an
// HTTP request's name from tags that a key may lack; the resource says the same there.
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

// spanKind is what a span says of its kind, or what its type says.
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
