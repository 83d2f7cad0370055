package agent

import (
	"bytes"
	"math"

	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/vmihailenco/msgpack/v5"
)

// fields writes msgpack map entries to memory, with one method per type. The encoder's errors can
// be ignored, because writes to memory do not fail.
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

// binary writes bytes. value must not be nil, which the agent rejects.
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
	sketches sketchEncoder
	sketch   sketch.Sketch // adds up the parts of a row; empty between uses
}

// group writes one row as ClientGroupedStats. The fields that tracers always write are present even
// if they are zero, because Datadog's test agent requires them. Empty optional labels are omitted:
// the agent treats a missing label as empty.
func (e *groupEncoder) group(r *export.Row) {
	key := r.Key()
	e.mapping(alwaysPresent + labelsPresent(key))
	e.text("Service", key.Service)
	e.text("Name", key.Operation)
	e.text("Resource", key.Resource)
	e.number("Hits", round(r.Hits))
	e.number("Errors", round(r.Errors))
	e.number("TopLevelHits", round(r.TopLevel))
	e.number("Duration", round(r.Duration))
	r.ReadOK(&e.sketch)
	e.binary("OkSummary", e.sketches.encode(&e.sketch, r.Mapping()))
	e.sketch.Reset()
	r.ReadErrors(&e.sketch)
	e.binary("ErrorSummary", e.sketches.encode(&e.sketch, r.Mapping()))
	e.sketch.Reset()
	e.flag("Synthetics", key.Synthetics)
	e.labels(key)
}

// alwaysPresent is the number of map entries that group writes itself.
const alwaysPresent = 10

// labels writes the optional labels of a key that are set. labelsPresent returns their number.
func (e *groupEncoder) labels(key *span.Key) {
	for l := span.LabelType; l < span.FirstList; l++ {
		if text := *key.Text(l); text != "" {
			e.text(l.AgentName(), text)
		}
	}
	if key.HTTPStatus != 0 {
		e.number("HTTPStatusCode", uint64(key.HTTPStatus))
	}
	if key.TraceRoot != span.TraceRootNotSet {
		e.number("IsTraceRoot", uint64(key.TraceRoot))
	}
	for l := span.FirstList; l < span.EndOfLists; l++ {
		if tags := *key.Tags(l); len(tags) > 0 {
			e.texts(l.AgentName(), tags)
		}
	}
}

// labelsPresent returns the number of entries that labels writes.
func labelsPresent(key *span.Key) (n int) {
	for l := span.LabelType; l < span.FirstList; l++ {
		n += present(*key.Text(l) != "")
	}
	for l := span.FirstList; l < span.EndOfLists; l++ {
		n += present(len(*key.Tags(l)) > 0)
	}
	return n + present(key.HTTPStatus != 0) + present(key.TraceRoot != span.TraceRootNotSet)
}

// present returns the number of map entries for an optional field: 1 if it is present, otherwise 0.
func present(isPresent bool) int {
	if isPresent {
		return 1
	}
	return 0
}

// round converts a weighted count to the agent's uint64.
func round(f float64) uint64 { return export.RoundRandomly(f, math.MaxUint64) }
