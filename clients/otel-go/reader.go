package spanstatsd

import (
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/spanstatsd/spanstatsd/client"
	"github.com/spanstatsd/spanstatsd/internal/rules/otel"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// reader applies the daemon's label rules to one span at a time.
type reader struct {
	policy  *otel.Policy
	service string
	encoder spanEncoder
	counter *otel.Counter
	batch   [1]client.Snapshot // memory for the snapshot to publish
}

// newReader returns a reader for spans of a process with the given service and resource.
func newReader(policy *otel.Policy, service string, res *resource.Resource) *reader {
	return &reader{
		policy: policy, service: service, counter: otel.NewCounter(),
		encoder: spanEncoder{resource: encodeForSpans(res), isRead: policy.Reads},
	}
}

// read returns the fingerprint of a span: spans with equal fingerprints have equal labels. It is valid until the next
// call, and empty if the labels are too long to remember. The flags are those of the span: error and
// top-level.
func (r *reader) read(s sdktrace.ReadOnlySpan) (fingerprint []byte, flags span.Flags) {
	fingerprint, flags, err := r.counter.ReadSpan(r.encoder.encode(s), r.service, r.policy)
	if err != nil {
		panic("BUG: the daemon's rules reject a span: " + err.Error())
	}
	return fingerprint, flags
}

// label returns the labels of the span that was read last. They are valid until the next span is read.
func (r *reader) label() *client.Key { return r.counter.Label(0) }

// originOf returns the origin that the daemon derives from an encoded resource.
func originOf(encoded []byte) (origin client.Origin) {
	counter := otel.NewCounter()
	encoder := spanEncoder{resource: encoded}
	if err := counter.Count(encoder.wrap(nil), namesByConvention); err != nil {
		panic("BUG: the daemon's rules reject a resource: " + err.Error())
	}
	for origin = range counter.Batches {
	}
	return origin
}
