package spanstatsd

import (
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/spanstatsd/spanstatsd/client"
	"github.com/spanstatsd/spanstatsd/internal/rules/otel"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// reader derives labels from spans by the rules of the daemon, one span at a time.
type reader struct {
	policy  *otel.Policy
	service string
	encoder spanEncoder
	rules   *otel.Counter      // derives labels and origins like the daemon
	batch   [1]client.Snapshot // memory for the snapshot to publish
}

// newReader returns a reader for spans of a process with the given service and resource.
func newReader(policy *otel.Policy, service string, res *resource.Resource) *reader {
	return &reader{
		policy: policy, service: service, rules: otel.NewCounter(),
		encoder: spanEncoder{resource: encodeForSpans(res), isRead: policy.Reads},
	}
}

// read returns the error and top-level flags of a span, and a fingerprint. Spans with equal fingerprints have equal
// labels. The fingerprint is valid until the next call. It is empty if the labels are too long to be cached.
func (r *reader) read(s sdktrace.ReadOnlySpan) (fingerprint []byte, flags span.Flags) {
	fingerprint, flags, err := r.rules.ReadSpan(r.encoder.encode(s), r.service, r.policy)
	if err != nil {
		panic("BUG: the daemon's rules reject a span: " + err.Error())
	}
	return fingerprint, flags
}

// labels returns the labels of the span that was read last. They are valid until the next span is read.
func (r *reader) labels() *client.Key { return r.rules.Label(0) }

// originOf returns the description of this process that the daemon derives from an encoded OpenTelemetry resource,
// such as the name, the version and the host of the service. It panics if the resource can't be decoded.
func originOf(encodedResource []byte) client.Origin {
	rules := otel.NewCounter() // derives origins and labels from OTLP requests
	encoder := spanEncoder{resource: encodedResource}
	request := encoder.wrapSpan(nil)
	if err := rules.Count(request, byConvention); err != nil {
		panic("BUG: the daemon's rules reject a resource: " + err.Error())
	}
	var origin client.Origin
	for batchOrigin := range rules.Batches {
		origin = batchOrigin // there is one batch, because the request contains one resource
	}
	return origin
}
