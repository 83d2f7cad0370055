package agent

import (
	"bytes"
	"math"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
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

func (f *fields) beginMap(entries int) { _ = f.enc.EncodeMapLen(entries) }

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

func (f *fields) beginArray(name string, length int) {
	_ = f.enc.EncodeString(name)
	_ = f.enc.EncodeArrayLen(length)
}

func (f *fields) texts(name string, values []string) {
	f.beginArray(name, len(values))
	for _, value := range values {
		_ = f.enc.EncodeString(value)
	}
}

// groupEncoder writes ClientGroupedStats.
type groupEncoder struct {
	*fields
	sketches sketchEncoder
	sketch   sketch.Sketch // scratch; empty between uses
}

// beginCycle prepares for the rows of a cycle.
func (e *groupEncoder) beginCycle(sealed *aggregate.Sealed) { e.sketches.encodeMappings(sealed) }

// writeGroup writes a row, the counters of one label set, as a map with the fields of Datadog's message
// ClientGroupedStats. It omits empty optional labels. It writes all other fields even if they are zero, because
// Datadog's test agent requires them.
func (e *groupEncoder) writeGroup(r *export.Row) {
	key := r.Key()
	e.beginMap(requiredFields + countOptionalLabels(key))
	e.text("Service", key.Service)
	e.text("Name", key.Operation)
	e.text("Resource", key.Resource)
	e.number("Hits", round(r.Hits))
	e.number("Errors", round(r.Errors))
	e.number("TopLevelHits", round(r.TopLevel))
	e.number("Duration", round(r.Duration))
	r.ReadOK(&e.sketch)
	e.writeAndResetSketch("OkSummary", r.Mapping())
	r.ReadErrors(&e.sketch)
	e.writeAndResetSketch("ErrorSummary", r.Mapping())
	e.flag("Synthetics", key.Synthetics)
	e.writeOptionalLabels(key)
}

// requiredFields is the number of map entries that writeGroup writes for every row.
const requiredFields = 10

// writeAndResetSketch writes e.sketch as a binary field, and then empties it. mapping determines which durations the bins
// of the sketch stand for.
func (e *groupEncoder) writeAndResetSketch(name string, mapping sketch.MappingID) {
	e.binary(name, e.sketches.encode(&e.sketch, mapping))
	e.sketch.Reset()
}

// writeOptionalLabels writes one map entry for each optional label of a key that is not empty.
func (e *groupEncoder) writeOptionalLabels(key *span.Key) {
	for l := span.LabelType; l < span.FirstList; l++ { // labels with one value
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
	for l := span.FirstList; l < span.EndOfLists; l++ { // labels with a list of tags
		if tags := *key.Tags(l); len(tags) > 0 {
			e.texts(l.AgentName(), tags)
		}
	}
}

// countOptionalLabels returns the number of map entries that writeOptionalLabels writes for a key.
func countOptionalLabels(key *span.Key) (count int) {
	for l := span.LabelType; l < span.FirstList; l++ {
		if *key.Text(l) != "" {
			count++
		}
	}
	if key.HTTPStatus != 0 {
		count++
	}
	if key.TraceRoot != span.TraceRootNotSet {
		count++
	}
	for l := span.FirstList; l < span.EndOfLists; l++ {
		if len(*key.Tags(l)) > 0 {
			count++
		}
	}
	return count
}

// round converts a weighted count, such as 2.5 hits, to an integer. It rounds up or down at random, so that sums
// of many counts are right on average.
func round(count float64) uint64 { return export.RoundRandomly(count, math.MaxUint64) }
