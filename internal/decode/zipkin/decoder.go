// Package zipkin decodes spans of Zipkin's API v2, in JSON or protobuf (ListOfSpans), into the table of
// an OTLP request, so that the rules for OpenTelemetry apply to them.
//
// Spans are translated as in the Collector's Zipkin receiver. Tags become attributes of the span, and
// of its resource if it has an attribute of that name. The local endpoint sets service.name, the remote
// endpoint peer.service. As Zipkin specifies, the tag "error" marks an error, whatever its value. A span
// without a kind is internal.
//
// A span without a duration is not finished. It is ignored, because another report of the same span
// follows with a duration. The server side of a shared span is not a root span.
//
// A request is decoded completely or not at all. Concurrency and limits are those of package
// decode/otlp.
package zipkin

import (
	"bytes"
	"errors"
	"math"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/decode/jsonscan"
	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// ErrUnparsable is the error for a body that is not a list of spans.
var ErrUnparsable = errors.New("read spans: the body is not a list of spans of Zipkin's API v2; check the " +
	"sender, and that its Content-Type matches the body")

// Decoder decodes request bodies. Its zero value is ready to use.
type Decoder struct {
	jsonscan.Scanner
	table                                      *otlp.Request
	spanAttributeNames, resourceAttributeNames *spantable.Names // names of the attributes to keep

	// The following fields describe the current span.
	span              spantable.Span
	extra             otlp.SpanExtra
	resourceTags      []spantable.Tag
	service, peer     spantable.Text
	isError, isShared bool
	hasDuration       bool
}

func (d *Decoder) begin(r *otlp.Request, body []byte, spanNames, resourceNames *spantable.Names) {
	r.Begin(body)
	d.Scanner, d.table = jsonscan.Scanner{Body: body}, r
	d.spanAttributeNames, d.resourceAttributeNames = spanNames, resourceNames
}

func (d *Decoder) beginSpan() {
	d.span = spantable.Span{Kind: spantable.KindInternal, TagStart: uint32(len(d.table.Tags))}
	d.extra, d.resourceTags = otlp.SpanExtra{}, d.resourceTags[:0]
	d.service, d.peer = spantable.Text{}, spantable.Text{}
	d.isError, d.isShared, d.hasDuration = false, false, false
}

// endSpan adds the current span to the table. It discards a span without a duration, because such a
// span has not ended yet. It returns an error if the span has no ID or no trace ID, or if the table
// exceeds a limit.
func (d *Decoder) endSpan() error {
	hasTraceID := d.extra.TraceHigh != 0 || d.extra.TraceLow != 0
	if d.span.ID == 0 || !hasTraceID {
		return ErrUnparsable
	}
	if !d.hasDuration {
		d.table.Tags = d.table.Tags[:d.span.TagStart] // removes its tags
		return nil
	}
	d.completeSpan()
	d.addSpan()
	return d.table.Err() //nolint:wrapcheck // already says what to do
}

// completeSpan sets the duration, the status and the parent of the current span, after all fields of
// the Zipkin span have been read. It also adds the attribute peer.service to the span and service.name
// to its resource.
func (d *Decoder) completeSpan() {
	s := &d.span
	// Zipkin requires reporters to round up to a microsecond, but Brave reports 0.
	s.Duration = max(s.Duration, microsecond)
	if d.isError {
		s.Status = spantable.StatusError
	}
	s.Parent = d.parentID()
	d.setSpanAttribute([]byte("peer.service"), d.peer)
	d.setResourceAttribute([]byte("service.name"), d.service)
	s.TagEnd = uint32(len(d.table.Tags))
}

// parentID returns the ID of the parent of the current span, or 0 for a root span. A client and a server can
// share one span in Zipkin: both report it with the same ID. The parent of the server's span is then the
// client's span.
func (d *Decoder) parentID() uint64 {
	hasParent := d.span.Parent != 0 && d.span.Parent != d.span.ID
	if hasParent {
		return d.span.Parent
	}
	if d.isShared {
		return d.span.ID
	}
	return 0
}

// addSpan adds the current span to the table. If its resource attributes differ from those of the
// previous span, it also adds a resource. It records an error in the table if there are too many spans,
// tags or resources.
func (d *Decoder) addSpan() {
	t := d.table
	newSpan := t.AddSpan(d.span.Kind)
	*newSpan = d.span
	hasTooManyTags := len(t.Tags) > t.Limits.Tags
	if hasTooManyTags {
		t.Fail(spantable.ErrTooMuch)
		return
	}
	if !d.belongsToLastResource() {
		t.AddResource(d.resourceTags)
	}
	if t.Err() == nil {
		t.AddExtra(d.extra) // trace ID and trace state
	}
}

// belongsToLastResource reports whether the current span has the same resource attributes as the last
// resource in the table. It returns false if the table has no resources.
func (d *Decoder) belongsToLastResource() bool {
	table := d.table
	if len(table.Resources) == 0 {
		return false
	}
	last := &table.Resources[len(table.Resources)-1]
	lastTags := table.Tags[last.TagStart:last.TagEnd]
	return slices.EqualFunc(lastTags, d.resourceTags, func(a, b spantable.Tag) bool {
		aText, bText := table.Bytes(a.Text()), table.Bytes(b.Text())
		return a.Label == b.Label && bytes.Equal(aText, bText)
	})
}

// statuses are the values of otel.status_code, as SDKs and Collectors write them.
var statuses = map[string]spantable.Status{
	"OK": spantable.StatusOK, "STATUS_CODE_OK": spantable.StatusOK,
	"ERROR": spantable.StatusError, "STATUS_CODE_ERROR": spantable.StatusError,
}

// applyTag stores a tag of a Zipkin span as a span attribute if its name is in d.spanAttributeNames, and as
// a resource attribute if it is in d.resourceAttributeNames. The tags error, otel.status_code and
// w3c.tracestate also set fields of the current span.
func (d *Decoder) applyTag(name []byte, value spantable.Text) {
	switch string(name) {
	case "error":
		d.isError = true
	case "otel.status_code":
		d.span.Status = statuses[d.table.String(value)]
	case "w3c.tracestate":
		d.extra.State = value
	}
	d.setSpanAttribute(name, value)
	d.setResourceAttribute(name, value)
}

// setSpanAttribute sets an attribute of the current span, unless its name is not in d.spanAttributeNames.
func (d *Decoder) setSpanAttribute(name []byte, value spantable.Text) {
	label := d.spanAttributeNames.Find(name)
	d.table.Tags = setTag(d.table.Tags, d.span.TagStart, label, value)
}

// setResourceAttribute sets an attribute of the resource of the current span, unless its name is not in
// d.resourceAttributeNames.
func (d *Decoder) setResourceAttribute(name []byte, value spantable.Text) {
	label := d.resourceAttributeNames.Find(name)
	d.resourceTags = setTag(d.resourceTags, 0, label, value)
}

// setTag sets the value of the tag with the given label in tags[first:], or appends a tag if there is
// none. It returns the new list. It changes nothing if value is empty, or if label is spantable.Other,
// which stands for all tags that are not stored.
func setTag(tags []spantable.Tag, first uint32, label spantable.Label, value spantable.Text) []spantable.Tag {
	if label == spantable.Other || value.Len == 0 {
		return tags
	}
	tag := otlp.TextTag(label, value)
	for i := int(first); i < len(tags); i++ {
		if tags[i].Label == label {
			tags[i] = tag
			return tags
		}
	}
	return append(tags, tag)
}

// microsecond is one microsecond in nanoseconds.
const microsecond = 1000

// nanoseconds converts microseconds to nanoseconds. It returns 0 if micros is the two's complement of a
// negative number, and a number near the maximum of an int64 if the result would be larger.
func nanoseconds(micros uint64) uint64 {
	isNegative := int64(micros) < 0
	if isNegative {
		return 0
	}
	return min(micros, math.MaxInt64/microsecond) * microsecond
}
