package flush

import (
	"bytes"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/vmihailenco/msgpack/v5"
)

// fields writes msgpack map entries, one method a type. It writes to memory,
// which cannot refuse, so the encoder's errors are not looked at.
type fields struct {
	bytes.Buffer
	enc *msgpack.Encoder
}

func newFields() *fields {
	f := &fields{}
	f.enc = msgpack.NewEncoder(&f.Buffer)
	return f
}

func (f *fields) mapping(entries int) { _ = f.enc.EncodeMapLen(entries) }

func (f *fields) text(name, value string) {
	_ = f.enc.EncodeString(name)
	_ = f.enc.EncodeString(value)
}

func (f *fields) number(name string, value uint64) {
	_ = f.enc.EncodeString(name)
	_ = f.enc.EncodeUint(value)
}

func (f *fields) flag(name string, value bool) {
	_ = f.enc.EncodeString(name)
	_ = f.enc.EncodeBool(value)
}

// binary writes value as bin. It must not be nil: that would become msgpack's
// nil, which the agent refuses.
func (f *fields) binary(name string, value []byte) {
	_ = f.enc.EncodeString(name)
	_ = f.enc.EncodeBytes(value)
}

func (f *fields) array(name string, length int) {
	_ = f.enc.EncodeString(name)
	_ = f.enc.EncodeArrayLen(length)
}

func (f *fields) texts(name string, values []string) {
	f.array(name, len(values))
	for _, value := range values {
		_ = f.enc.EncodeString(value)
	}
}

// groupEncoder writes ClientGroupedStats.
type groupEncoder struct {
	*fields
	sketches *sketchEncoder
	sketch   []byte
}

// group writes one aggregate. The agent reads a missing key as its zero value,
// so labels that are empty are left out; the sketches always stand there.
func (e *groupEncoder) group(key *span.Key, counts *aggregate.Aggregate) {
	e.mapping(alwaysPresent + labelsPresent(key))
	e.text("Service", key.Service)
	e.text("Name", key.Operation)
	e.text("Resource", key.Resource)
	e.number("Hits", round(counts.Hits))
	e.number("Errors", round(counts.Errors))
	e.number("TopLevelHits", round(counts.TopLevel))
	e.number("Duration", round(counts.Duration))
	e.summary("OkSummary", counts.OK)
	e.summary("ErrorSummary", counts.Err)
	e.labels(key)
}

// alwaysPresent is how many entries a group has besides its labels.
const alwaysPresent = 9

func (e *groupEncoder) summary(name string, s *aggregate.Sketch) {
	e.sketch = e.sketches.append(e.sketch[:0], s)
	e.binary(name, e.sketch)
}

func (e *groupEncoder) labels(key *span.Key) {
	for _, label := range textLabels(key) {
		if label.value != "" {
			e.text(label.name, label.value)
		}
	}
	if key.HTTPStatus != 0 {
		e.number("HTTPStatusCode", uint64(key.HTTPStatus))
	}
	if key.TraceRoot != span.TraceRootNotSet {
		e.number("IsTraceRoot", uint64(key.TraceRoot))
	}
	if key.Synthetics {
		e.flag("Synthetics", true)
	}
	if len(key.PeerTags) > 0 {
		e.texts("PeerTags", key.PeerTags)
	}
	if len(key.AdditionalTags) > 0 {
		e.texts("AdditionalMetricTags", key.AdditionalTags)
	}
}

// labelsPresent is how many entries labels writes.
func labelsPresent(key *span.Key) (n int) {
	for _, label := range textLabels(key) {
		n += present(label.value != "")
	}
	return n + present(key.HTTPStatus != 0) + present(key.TraceRoot != span.TraceRootNotSet) +
		present(key.Synthetics) + present(len(key.PeerTags) > 0) + present(len(key.AdditionalTags) > 0)
}

func present(is bool) int {
	if is {
		return 1
	}
	return 0
}

type textLabel struct{ name, value string }

// textLabels are the optional labels that are text, under the agent's names.
// srv_src is not a slip: the agent ignores any other spelling.
func textLabels(key *span.Key) [6]textLabel {
	return [...]textLabel{
		{"Type", key.Type},
		{"SpanKind", key.Kind},
		{"HTTPMethod", key.HTTPMethod},
		{"HTTPEndpoint", key.HTTPEndpoint},
		{"GRPCStatusCode", key.GRPCStatus},
		{"srv_src", key.ServiceSource},
	}
}
