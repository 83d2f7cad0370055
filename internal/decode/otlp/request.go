// Package otlp decodes the traces of an OTLP request, an ExportTraceServiceRequest in protobuf, into a
// table of spans.
//
// Decode parses the request in place, in one pass. It keeps the span fields that rules can read, and
// the attributes whose names it was given. Texts are positions in the request; nothing is copied. It
// checks the encoding of all messages, including the attributes of events, so every other decoder
// accepts a request that Decode accepts.
//
// A Request adds OTLP's structure to the table: the resources, the scopes, and a SpanExtra for each
// span. They contain positions in the encoded request, so that parts of it can be copied or changed.
//
// # Not supported
//
// A request is decoded completely or not at all. Decode rejects IDs with a wrong length, and messages
// with two Resource or InstrumentationScope messages, which protobuf decoders would merge. It does not
// validate UTF-8. It skips protobuf groups, which OTLP does not use, and messages that are nested deeper
// than MaxDepth, which no rule reads, so deep nesting does not increase its memory.
//
// # Concurrency
//
// A Request is used by one goroutine at a time. It reuses its memory, so that decoding does not
// allocate per span.
//
// # Limits
//
// Spans, labeled attributes, resources and scopes are limited in proportion to the length of the
// request, and absolutely. Bytes returns the maximum memory of a Request.
package otlp

import (
	"encoding/binary"
	"errors"
	"slices"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// ErrUnparsable is the error for requests that can't be decoded.
var ErrUnparsable = errors.New("read spans: the body is not an ExportTraceServiceRequest in protobuf; check the " +
	"sender, and any proxy that changes the body")

// StatsComputed is the resource attribute that marks spans as already counted by the client.
const StatsComputed = "_dd.stats_computed"

// Request is a decoded request. Its table has no groups and no senders; it has resources instead.
type Request struct {
	spantable.Table
	Extras    []SpanExtra // by span
	Resources []Resource
	Scopes    []Scope

	spanNames, resourceNames *spantable.Names // names of the attributes to keep
}

// SpanExtra holds the position of a span in the request, and the fields that only OTLP has.
type SpanExtra struct {
	FieldStart, FieldEnd uint32 // field in the list of spans, including its tag
	MessageStart         uint32 // start of the span message
	StateFieldStart      uint32 // start of the tracestate field; 0 if there is none
	State                spantable.Text
	TraceHigh, TraceLow  uint64 // trace ID
	Resource, Scope      uint32 // indexes in Request.Resources and Request.Scopes
}

// Part is the position of a message that contains a list: a resource with its scopes, or a scope with
// its spans.
type Part struct {
	FieldStart, FieldEnd int // field that contains the message, including its tag
	MessageStart         int // start of the message
	ListStart, ListEnd   int // range of indexes in Request.Scopes or Request.Spans; excludes ListEnd
}

// Resource is a ResourceSpans message.
type Resource struct {
	Part
	Message          spantable.Text // Resource message, which contains the attributes
	MessageField     int            // start of the field that contains it; 0 if there is none
	TagStart, TagEnd uint32         // range of attributes in Request.Tags; excludes TagEnd
	IsCounted        bool           // set by a rule if the client has already counted the spans
}

// Scope is a ScopeSpans message.
type Scope struct {
	Part
	TagStart, TagEnd uint32 // range of attributes in Request.Tags; excludes TagEnd
	TagBytes         int    // length of the message that contains the attributes
}

// Release drops the reference to the request body. If the request was unusually large, Release also
// frees all memory of r and returns true. Otherwise, it keeps the memory for the next request.
func (r *Request) Release() (wasLarge bool) {
	wasLarge = r.Table.Release()
	if wasLarge {
		*r = Request{}
	}
	return wasLarge
}

// HasSpans reports whether a resource has spans.
func (r *Request) HasSpans(resource *Resource) bool {
	first, last := r.SpansOf(resource)
	return first < last
}

// SpansOf returns the range r.Spans[first:last] of the spans of a resource.
func (r *Request) SpansOf(resource *Resource) (first, last int) {
	if resource.ListStart == resource.ListEnd {
		return 0, 0
	}
	return r.Scopes[resource.ListStart].ListStart, r.Scopes[resource.ListEnd-1].ListEnd
}

// Decode decodes body, an OTLP request, into r. It keeps only the span attributes in spanNames and the
// resource attributes in resourceNames. Texts in r refer to body, so they are valid until body is
// modified. Decode returns an error if body is invalid or too large.
func (r *Request) Decode(body []byte, spanNames, resourceNames *spantable.Names) error {
	r.Begin(body)
	r.spanNames, r.resourceNames = spanNames, resourceNames
	pos := 0
	for pos < len(body) && r.Err() == nil {
		f, next := readField(body, pos)
		isValid := next != 0
		if !isValid {
			r.Fail(ErrUnparsable)
			break
		}
		if f.tag == requestResourceSpans {
			r.readResourceSpans(pos, f.start, next)
		}
		pos = next
	}
	return r.Err()
}

// readResourceSpans reads the ResourceSpans message in r.Body[begin:end] and appends it to r.Resources.
// The protobuf field with the message starts at fieldStart. readResourceSpans records an error in r if
// the message is invalid, or if r has too many resources.
func (r *Request) readResourceSpans(fieldStart, begin, end int) {
	if len(r.Resources) >= maxParts(len(r.Body)) {
		r.Fail(spantable.ErrTooMuch)
		return
	}
	resource := Resource{Part: Part{FieldStart: fieldStart, FieldEnd: end, MessageStart: begin, ListStart: len(r.Scopes)}}
	index := len(r.Resources)
	r.Resources = append(r.Resources, resource) // reserves the index, to which spans refer
	b := r.Body[:end]
	for pos := begin; pos < end && r.Err() == nil; {
		f, next := readField(b, pos)
		switch {
		case next == 0:
			r.Fail(ErrUnparsable)
		case f.tag == resourceSpansScopes:
			r.readScopeSpans(pos, f.start, next, uint32(index))
		case f.tag == resourceSpansResource:
			if resource.Message.Len > 0 {
				r.Fail(ErrUnparsable) // a second Resource message, which no SDK writes
			}
			resource.Message = textBetween(f.start, next)
			resource.MessageField = pos
		}
		pos = next
	}
	resource.ListEnd = len(r.Scopes)
	// The Resource message can follow the spans, so its attributes are read last.
	resource.TagStart = uint32(len(r.Tags))
	r.readAttributes(resource.Message, resourceAttributes, resourceEntities, r.resourceNames)
	resource.TagEnd = uint32(len(r.Tags))
	r.Resources[index] = resource
}

// readScopeSpans reads the ScopeSpans message in r.Body[begin:end] and appends it to r.Scopes. The
// protobuf field with the message starts at fieldStart. resource is the index of the resource that
// contains the scope.
func (r *Request) readScopeSpans(fieldStart, begin, end int, resource uint32) {
	if len(r.Scopes) >= maxParts(len(r.Body)) {
		r.Fail(spantable.ErrTooMuch)
		return
	}
	scope := Scope{Part: Part{FieldStart: fieldStart, FieldEnd: end, MessageStart: begin, ListStart: len(r.Spans)}}
	index := len(r.Scopes)
	r.Scopes = append(r.Scopes, scope) // reserves the index, to which spans refer
	var message spantable.Text
	b := r.Body[:end]
	for pos := begin; pos < end && r.Err() == nil; {
		f, next := readField(b, pos)
		switch {
		case next == 0:
			r.Fail(ErrUnparsable)
		case f.tag == scopeSpansSpans:
			r.readSpan(SpanExtra{
				FieldStart: uint32(pos), FieldEnd: uint32(next), MessageStart: uint32(f.start),
				Resource: resource, Scope: uint32(index),
			})
		case f.tag == scopeSpansScope:
			if message.Len > 0 {
				r.Fail(ErrUnparsable) // a second InstrumentationScope message
			}
			message = textBetween(f.start, next)
		}
		pos = next
	}
	scope.ListEnd, scope.TagStart, scope.TagBytes = len(r.Spans), uint32(len(r.Tags)), int(message.Len)
	r.readAttributes(message, scopeAttributes, noField, r.spanNames)
	scope.TagEnd = uint32(len(r.Tags))
	r.Scopes[index] = scope
}

// readSpan reads the span at the position in extra, and completes extra.
func (r *Request) readSpan(extra SpanExtra) {
	r.Tags = slices.Grow(r.Tags, reservedAttributes)
	b, end := r.Body[:extra.FieldEnd], int(extra.FieldEnd)
	s := r.AddSpan(spantable.KindUnspecified)
	endTime := uint64(0)
	for pos := int(extra.MessageStart); pos < end; {
		if b[pos] == byte(spanAttributes) {
			if pos = r.readCommonAttributes(b, pos, byte(spanAttributes), r.spanNames); pos == end {
				break
			}
		}
		f, next := readField(b, pos)
		if next == 0 {
			r.Fail(ErrUnparsable)
			return
		}
		isValid := true
		switch f.tag {
		case spanTraceID:
			isValid = readTraceID(&extra, b[f.start:next])
		case spanID:
			s.ID, isValid = readSpanID(b[f.start:next])
		case spanParentID:
			s.Parent, isValid = readSpanID(b[f.start:next])
		case spanTraceState:
			extra.State, extra.StateFieldStart = textBetween(f.start, next), uint32(pos)
		case spanName:
			s.Name = textBetween(f.start, next)
		case spanKind:
			s.Kind = kindFromNumber(f.value)
		case spanStart:
			s.Start = f.value
		case spanEnd:
			endTime = f.value
		case spanAttributes:
			r.readAttribute(b[:next], f.start, r.spanNames)
		case spanEvents:
			isValid = isValidMessage(b[:next], f.start, messageEvent)
		case spanLinks:
			isValid = isValidMessage(b[:next], f.start, messageLink)
		case spanStatus:
			isValid = readStatus(&s.Status, b[:next], f.start)
		}
		if !isValid {
			r.Fail(ErrUnparsable)
			return
		}
		pos = next
	}
	if endTime > s.Start {
		s.Duration = endTime - s.Start
	}
	s.TagEnd = uint32(len(r.Tags))
	if len(r.Tags) > r.Limits.Tags {
		r.Fail(spantable.ErrTooMuch)
	}
	r.Extras = append(r.Extras, extra)
}

// readTraceID stores a trace ID, 16 bytes in big-endian order, in extra. If id is empty, it stores 0.
// It returns false if id has any other length.
func readTraceID(extra *SpanExtra, id []byte) (isValid bool) {
	switch len(id) {
	case 16:
		extra.TraceHigh = binary.BigEndian.Uint64(id[:8])
		extra.TraceLow = binary.BigEndian.Uint64(id[8:])
		return true
	case 0:
		extra.TraceHigh = 0
		extra.TraceLow = 0
		return true
	}
	return false
}

// readSpanID converts a span ID, 8 bytes in big-endian order, to a number. An empty ID becomes 0.
// isValid is false if id has any other length.
func readSpanID(id []byte) (n uint64, isValid bool) {
	switch len(id) {
	case 8:
		return binary.BigEndian.Uint64(id), true
	case 0:
		return 0, true
	}
	return 0, false
}

// kindFromNumber returns the span kind with the given number in OTLP, or KindUnspecified if the number
// is unknown. Like a protobuf decoder, it ignores all but the low 32 bits.
func kindFromNumber(n uint64) spantable.Kind {
	if k := uint32(n); 0 < k && k <= uint32(spantable.KindConsumer) {
		return spantable.Kind(k)
	}
	return spantable.KindUnspecified
}

// readStatus reads the Status message in b[pos:] and stores its code in status, or StatusOther if the
// code is unknown. It changes nothing if there is no code. It returns false if the message is invalid.
func readStatus(status *spantable.Status, b []byte, pos int) (isValid bool) {
	for pos < len(b) {
		f, next := readField(b, pos)
		if next == 0 {
			return false
		}
		if f.tag == statusCode {
			code := uint32(f.value)
			*status = spantable.Status(min(code, uint32(spantable.StatusOther)))
		}
		pos = next
	}
	return true
}

// The following methods are for decoders of other formats with OpenTelemetry's span model, such as
// Zipkin. They fill a Request, so that the same rules apply, but leave the positions at 0.

// Begin empties the request, and sets its limits for a body.
func (r *Request) Begin(body []byte) {
	r.Reset(body, spantable.LimitsOf(len(body), minAttributeBytes))
	r.Extras, r.Resources, r.Scopes = r.Extras[:0], r.Resources[:0], r.Scopes[:0]
}

// AddResource appends a resource with a copy of the given attributes and one scope without spans. The
// caller adds spans to the scope with AddExtra. If r already has the maximum number of resources,
// AddResource only records an error, which r.Err returns.
func (r *Request) AddResource(attributes []spantable.Tag) {
	maxResources := maxParts(len(r.Body))
	if len(r.Resources) >= maxResources {
		r.Fail(spantable.ErrTooMuch)
		return
	}
	nextSpan := len(r.Extras)                                          // r.Extras has one element per span
	scope := Scope{Part: Part{ListStart: nextSpan, ListEnd: nextSpan}} // no spans yet
	scopeIndex := len(r.Scopes)
	r.Scopes = append(r.Scopes, scope)

	resource := Resource{Part: Part{ListStart: scopeIndex, ListEnd: scopeIndex + 1}}
	resource.TagStart = uint32(len(r.Tags))
	r.Tags = append(r.Tags, attributes...)
	resource.TagEnd = uint32(len(r.Tags))
	r.Resources = append(r.Resources, resource)
}

// AddExtra appends extra, the additional fields of the span that was added last, to r.Extras. It
// assigns this span to the last resource and the last scope, which must exist.
func (r *Request) AddExtra(extra SpanExtra) {
	extra.Resource, extra.Scope = uint32(len(r.Resources)-1), uint32(len(r.Scopes)-1)
	r.Extras = append(r.Extras, extra)
	r.Scopes[extra.Scope].ListEnd = len(r.Extras)
}

// minAttributeBytes is half of the typical length of an encoded attribute with a label.
const minAttributeBytes = 24

// maxParts returns the maximum number of resources, and of scopes, in a body of bodyLen bytes.
func maxParts(bodyLen int) int {
	const few, many, bytesPerPart = 1 << 8, 1 << 15, 64
	return min(few+bodyLen/bytesPerPart, many)
}

// MaxMemory returns the maximum memory of a Request for a body of bodyLen bytes. perSpan is the memory that
// the caller needs for each span in addition.
func MaxMemory(bodyLen, perSpan int) int {
	const resourceAndScopeBytes = int(unsafe.Sizeof(Resource{}) + unsafe.Sizeof(Scope{}))
	const reservedBytes = reservedAttributes * int(unsafe.Sizeof(spantable.Tag{}))
	const extraBytes = int(unsafe.Sizeof(SpanExtra{}))
	limits := spantable.LimitsOf(bodyLen, minAttributeBytes)
	spanBytes := limits.Bytes(extraBytes + perSpan)
	otherBytes := maxParts(bodyLen)*resourceAndScopeBytes + reservedBytes
	allocatedBytes := spantable.GrowthFactor * float64(otherBytes) // append allocates more than needed; as in spanBytes
	return spanBytes + int(allocatedBytes)
}
