// Package datadog decodes trace payloads in the agent's four formats into a table of spans.
//
// A Decoder parses a payload in place, in one pass. It keeps the span fields that rules can read, and
// the tags whose names it was given. It skips all other values, but they must be valid msgpack. Each
// format has a file that contains only its own structure: v04.go, v05.go, v07.go and v1.go. They share
// fields.go, tags.go, values.go and strings.go. Values are parsed by a fast path for their most common
// encoding; msgpack.Reader parses all other encodings.
//
// Each trace becomes a spantable.Group. Tags that describe the trace or its process (origin,
// priority, environment, version) are copied to the group and to the sender, with the precedence that
// the agent uses.
//
// A payload is decoded completely or not at all. Decode returns an error for a payload that does not
// match its format. It also returns an error for values that no tracer writes and for which the agent's
// result can't be predicted.
//
// # Concurrency
//
// A Decoder is used by one goroutine at a time. It reuses its memory, so that decoding does not
// allocate per span.
//
// # Limits
//
// The table limits spans, tags, strings and the bytes of text that rules read, depending on the length
// of the payload.
package datadog

import (
	"errors"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
	"github.com/spanstatsd/spanstatsd/internal/wire/msgpack"
)

// Decoder decodes payloads. Its zero value is ready to use.
type Decoder struct {
	msgpack.Reader
	body    []byte
	format  Format
	table   *spantable.Table
	names   *spantable.Names // names of the tags to keep
	strings stringTable      // strings of a payload, for formats that refer to strings by index

	list TraceList
	// nextField maps each field to the one that followed it in the last span. Tracers write the fields
	// of all spans in the same order, so this is the first candidate for the next field.
	nextField [fieldTableSize]field

	payloadTags processTags // tags from the spans of all traces so far
	sender      spantable.Sender
	traceTags   traceTags // tags from the spans of the current trace
	lastTagMap  field     // last map of tags in the current span; fieldOther if none
}

// TraceList is the position of the list of traces in a payload. It is used to remove traces.
type TraceList struct {
	HeaderStart int // start of the array header
	TracesStart int // start of the first trace
	TracesEnd   int // end of the list; 0 if the payload has none

	// FieldsStart and FieldCount are the start and number of the fields of a v1 payload, which is a map.
	// They exclude the field that contains only strings.
	FieldsStart, FieldCount int
}

func (d *Decoder) reset(format Format, body []byte, names *spantable.Names, t *spantable.Table) {
	t.Reset(body, limitsOf(len(body)))
	d.Reader = msgpack.NewReader(body)
	d.body, d.format, d.names, d.table = body, format, names, t
	d.strings.reset()
	d.list = TraceList{}
	d.payloadTags = processTags{}
	d.sender = spantable.Sender{}
	d.traceTags = traceTags{}
}

// Decode decodes body, a payload of traces, into t. It keeps only the tags whose names are in names,
// which must begin with TraceTags. The texts in t refer to body, so they are valid until body is
// modified. Decode returns an error if body is invalid or exceeds a limit of t. The Datadog agent might
// accept such a body, so the caller should forward it.
func (d *Decoder) Decode(format Format, body []byte, names *spantable.Names, t *spantable.Table) error {
	d.reset(format, body, names, t)
	switch format {
	case FormatV04:
		v04{d}.readPayload()
	case FormatV05:
		v05{d}.readPayload()
	case FormatV07:
		v07{d}.readPayload()
	default:
		v1{d}.readPayload()
	}
	if d.Failed() {
		t.Fail(ErrUnparsable)
	}
	return t.Err() //nolint:wrapcheck // ErrUnparsable or spantable.ErrTooMuch
}

// readTraceCount reads the header of the list of traces and returns their number.
func (d *Decoder) readTraceCount() int {
	d.list.HeaderStart = d.Pos()
	count := d.Array()
	d.list.TracesStart = d.Pos()
	return count
}

// beginTrace returns a new group for the trace that starts at the current position. The caller must
// call endTrace after all spans of the trace, to add the group to the table.
func (d *Decoder) beginTrace() spantable.Group {
	d.traceTags = traceTags{}
	return spantable.Group{SpanStart: uint32(len(d.table.Spans)), BodyStart: uint32(d.Pos())}
}

// beginSpan appends a span to the table and returns it.
func (d *Decoder) beginSpan(kind spantable.Kind) *spantable.Span {
	d.lastTagMap = fieldOther
	s := d.table.AddSpan(kind)
	d.checkLimits()
	return s
}

// endTrace completes trace, the group of spans of one trace, and appends it to the table. It sets the origin and the
// sampling priority of the trace, if tags of its spans contain them. In formats before v1, it also sets the trace ID.
// The decoder must be at the end of the trace.
func (d *Decoder) endTrace(trace spantable.Group) {
	spanTags := &d.traceTags
	if spanTags.origin.Len != 0 {
		trace.Origin = spanTags.origin
	}
	if spanTags.hasPriority {
		trace.Priority = spanTags.priority
		trace.HasPriority = true
	}
	if d.format != FormatV1 { // in v1, the trace has its ID already
		trace.TraceLow = spanTags.traceIDLow
	}
	trace.BodyEnd = uint32(d.Pos())
	trace.StringCount = uint32(len(d.strings.texts)) // up to the end of the trace
	d.table.AddGroup(trace)
	d.checkLimits()
}

// endPayload adds the sender, a description of the process that sent the payload, to the table. In
// formats before v1, the environment, version, host and Git commit of the sender are tags of its spans.
func (d *Decoder) endPayload() {
	s, tags := &d.sender, &d.payloadTags
	s.Env, s.Version, s.Host, s.Commit = tags.env, tags.version, tags.host, tags.commit
	d.table.Senders = append(d.table.Senders, *s)
}

// checkLimits stops the decoder if the payload exceeds a limit of the table.
func (d *Decoder) checkLimits() {
	if d.table.Err() != nil {
		d.Fail()
	}
}

// Format returns the format of the last payload.
func (d *Decoder) Format() Format { return d.format }

// TraceList returns the position of the list of traces in the last payload.
func (d *Decoder) TraceList() TraceList { return d.list }

// Strings returns the strings that the last payload refers to by index.
func (d *Decoder) Strings() []spantable.Text { return d.strings.texts }

// maxRetainedStrings is the largest string table that is reused for the next payload.
const maxRetainedStrings = 1 << 16

// Release drops all references to the last payload and its table. It keeps the memory of the string
// table for the next payload, unless the last payload had unusually many strings.
func (d *Decoder) Release() {
	d.Reader, d.body, d.table = msgpack.Reader{}, nil, nil
	if cap(d.strings.texts) > maxRetainedStrings {
		d.strings = stringTable{}
	}
}

// Format identifies a trace endpoint of the Datadog agent by the encoding of its payloads.
type Format uint8

const (
	FormatV04 Format = iota // also /v0.3/traces
	FormatV05
	FormatV07
	FormatV1
)

// String returns the version in the path of the endpoint, for example v0.4.
func (f Format) String() string { return [...]string{"v0.4", "v0.5", "v0.7", "v1.0"}[f] }

// hasInlineStrings reports whether the format writes out every string instead of using an index.
func (f Format) hasInlineStrings() bool { return f == FormatV04 || f == FormatV07 }

// ErrUnparsable is the error for payloads that are invalid in their format, or that contain values for
// which the result of the Datadog agent can't be predicted.
var ErrUnparsable = errors.New("read traces: the body is not in the format of its endpoint")

// Labels of the tags that describe a trace, its process, or the kind of a span.
const (
	LabelKind spantable.Label = iota + 1
	LabelEnv
	LabelVersion
	LabelHostname
	LabelCommit
	LabelOrigin
	LabelPriority
	LabelProcessTags
	LabelTraceHigh    // upper half of a 128-bit trace ID
	LabelSpanSampling // set on spans kept by single-span sampling
	LabelEventRate    // set on spans that are App Analytics events
	labelEmptyName    // name of a tag is an empty string that is not the first of a v0.5 dictionary
	TraceLabels       // number of these labels, including spantable.Other
)

// isTraceLabel reports whether l is one of these labels.
func isTraceLabel(l spantable.Label) bool { return l < TraceLabels }

// TraceTags are the names of these tags, by label.
var TraceTags = [TraceLabels]string{
	LabelKind: "span.kind", LabelEnv: "env", LabelVersion: "version", LabelHostname: "_dd.hostname",
	LabelCommit: "_dd.git.commit.sha", LabelOrigin: "_dd.origin", LabelPriority: "_sampling_priority_v1",
	LabelProcessTags: "_dd.tags.process", LabelTraceHigh: "_dd.p.tid",
	LabelSpanSampling: "_dd.span_sampling.mechanism", LabelEventRate: "_dd1.sr.eausr",
}

// minTagBytes is the minimum length of an encoded tag, as nearly all tracers write it.
const minTagBytes = 8

// limitsOf returns the limits for a payload of bodyLen bytes.
func limitsOf(bodyLen int) spantable.Limits { return spantable.LimitsOf(bodyLen, minTagBytes) }

// stringBytes is the memory for one indexed string: its position, its label, and its slots in a
// half-full hash table and in the smaller one that the table replaced.
const stringBytes = int(unsafe.Sizeof(spantable.Text{})+unsafe.Sizeof(spantable.Label(0))) + 4*4

// MaxMemory returns the maximum memory of a decoder and its table for payloads of bodyLen bytes. perSpan is
// the memory that the caller needs for each span in addition.
func MaxMemory(bodyLen, perSpan int) int {
	l := limitsOf(bodyLen)
	return l.Bytes(perSpan) + int(spantable.GrowthFactor*float64(l.Strings*stringBytes))
}
