// Package otlp decodes the body of an OTLP request with traces, an ExportTraceServiceRequest in
// protobuf, into a table of its spans.
//
// # Decoding
//
// Decode steps through the whole body once, in place. Of each span it keeps the fields that a
// rule needs and those attributes that have a label in the tables of names that it is given.
// Nothing is decoded into objects: texts are places in the body. It steps through every message,
// down to the attributes of events, so a body that is decoded here is one that every decoder
// takes.
//
// A Request is a table of spans with what only OTLP knows of them: a Place for each span, which
// is where it lies in the body, and the resources and scopes around them. So that a part of a
// request can be written anew, resources, scopes and spans know where they begin and end.
//
// # What is not read
//
// A body is read whole or not at all: an error says that it is left to whoever takes it. An id of
// another length than its own, and a resource or a scope in two parts are not read. Texts are not
// checked to be UTF-8. A group, which OTLP has none of, is stepped over, and so are messages nested
// deeper than MaxDepth: neither says anything to a rule, and no depth takes stack or memory.
//
// # Bounds
//
// Spans, attributes that are kept, resources and scopes are bounded in proportion to the body
// and in all; Bytes says what a Request takes.
//
// # Threading
//
// One goroutine at a time uses a Request. Its memory is used again for the next body, and
// nothing is allocated a span once it is warm.
package otlp

import (
	"encoding/binary"
	"errors"
	"slices"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// ErrUnread is why a body is left to whoever takes it: it is no request, or one that is not read.
var ErrUnread = errors.New("read spans: the body is no ExportTraceServiceRequest of OTLP in protobuf: " +
	"check what the sender writes, or that no proxy changes it")

// StatsComputed is the attribute by which a resource says whether somebody has counted its spans.
const StatsComputed = "_dd.stats_computed"

// Request is one request, decoded. Its table has no groups and no senders: the resources are
// both.
type Request struct {
	spantable.Table
	Places    []Place // by span
	Resources []Resource
	Scopes    []Scope

	ofSpans, ofResources *spantable.Names
}

// Place is where a span lies in the body, and what it says that only OTLP has.
type Place struct {
	At, End             uint32 // of its field in the list of spans, with the tag
	Body                uint32 // where its message begins
	StateField          uint32 // where the field of its tracestate begins, 0 where there is none
	State               spantable.Text
	TraceHigh, TraceLow uint64
	Resource, Scope     uint32
}

// Part is a message with messages of the next kind in it: a resource has scopes, and a scope has
// spans.
type Part struct {
	At, End     int // of its field, with the tag
	Body        int // where its message begins
	First, Last int // of what it has
}

// Resource is what spans were sent by.
type Resource struct {
	Part
	Said              spantable.Text // the message that says who it is
	SaidField         int            // where the field of that begins, 0 where there is none
	FirstTag, LastTag uint32         // its attributes
	IsCounted         bool           // a rule has found that somebody has counted its spans already
}

// Scope is what spans were made by.
type Scope struct {
	Part
	FirstTag, LastTag uint32 // its attributes
	TagBytes          int    // of the message that has them
}

// Release lets go of the body, and of the memory that only a very large one needed. It reports
// whether there was such memory.
func (r *Request) Release() (wasLarge bool) {
	if wasLarge = r.Table.Release(); wasLarge {
		*r = Request{}
	}
	return wasLarge
}

// HasSpans says whether a resource has any.
func (r *Request) HasSpans(of *Resource) bool {
	first, last := r.SpansOf(of)
	return first < last
}

// SpansOf are the spans of a resource, from first to last.
func (r *Request) SpansOf(of *Resource) (first, last int) {
	if of.First == of.Last {
		return 0, 0
	}
	return r.Scopes[of.First].First, r.Scopes[of.Last-1].Last
}

// Decode decodes a body. What it finds is valid until the body is used again.
func (r *Request) Decode(body []byte, ofSpans, ofResources *spantable.Names) error {
	r.Begin(body)
	r.ofSpans, r.ofResources = ofSpans, ofResources
	for at := 0; at < len(body) && r.Err() == nil; {
		f, next := readField(body, at)
		switch {
		case next == 0:
			r.Fail(ErrUnread)
		case f.tag == requestResourceSpans:
			r.resourceSpans(at, f.at, next)
		}
		at = next
	}
	return r.Err()
}

// resourceSpans reads a resource with its spans. Which of both comes first is left to who wrote
// them.
func (r *Request) resourceSpans(at, begin, end int) {
	if len(r.Resources) >= partsOf(len(r.Body)) {
		r.Fail(spantable.ErrTooMuch)
		return
	}
	of := Resource{Part: Part{At: at, End: end, Body: begin, First: len(r.Scopes)}}
	number := len(r.Resources)
	r.Resources = append(r.Resources, of)
	b := r.Body[:end]
	for at := begin; at < end && r.Err() == nil; {
		f, next := readField(b, at)
		switch {
		case next == 0:
			r.Fail(ErrUnread)
		case f.tag == resourceSpansScopes:
			r.scopeSpans(at, f.at, next, uint32(number))
		case f.tag == resourceSpansResource:
			if of.Said.Len > 0 {
				r.Fail(ErrUnread) // who it is in two parts: no SDK writes that
			}
			of.Said, of.SaidField = textAt(f.at, next), at
		}
		at = next
	}
	of.Last, of.FirstTag = len(r.Scopes), uint32(len(r.Tags))
	r.attributesOf(of.Said, resourceAttributes, resourceEntities, r.ofResources)
	of.LastTag = uint32(len(r.Tags))
	r.Resources[number] = of
}

// scopeSpans reads the spans of one instrumentation scope.
func (r *Request) scopeSpans(at, begin, end int, resource uint32) {
	if len(r.Scopes) >= partsOf(len(r.Body)) {
		r.Fail(spantable.ErrTooMuch)
		return
	}
	of := Scope{Part: Part{At: at, End: end, Body: begin, First: len(r.Spans)}}
	number := len(r.Scopes)
	r.Scopes = append(r.Scopes, of)
	var said spantable.Text
	b := r.Body[:end]
	for at := begin; at < end && r.Err() == nil; {
		f, next := readField(b, at)
		switch {
		case next == 0:
			r.Fail(ErrUnread)
		case f.tag == scopeSpansSpans:
			r.span(Place{
				At: uint32(at), End: uint32(next), Body: uint32(f.at),
				Resource: resource, Scope: uint32(number),
			})
		case f.tag == scopeSpansScope:
			if said.Len > 0 {
				r.Fail(ErrUnread)
			}
			said = textAt(f.at, next)
		}
		at = next
	}
	of.Last, of.FirstTag, of.TagBytes = len(r.Spans), uint32(len(r.Tags)), int(said.Len)
	r.attributesOf(said, scopeAttributes, noField, r.ofSpans)
	of.LastTag = uint32(len(r.Tags))
	r.Scopes[number] = of
}

// span reads a span, of which is known where it lies.
func (r *Request) span(place Place) {
	r.Tags = slices.Grow(r.Tags, attributesAhead)
	b, end := r.Body[:place.End], int(place.End)
	s := r.AddSpan(spantable.KindUnspecified)
	finish := uint64(0)
	for at := int(place.Body); at < end; {
		if b[at] == byte(spanAttributes) {
			if at = r.commonAttributes(b, at, byte(spanAttributes), r.ofSpans); at == end {
				break
			}
		}
		f, next := readField(b, at)
		if next == 0 {
			r.Fail(ErrUnread)
			return
		}
		isRead := true
		switch f.tag {
		case spanTraceID:
			isRead = readTraceID(&place, b[f.at:next])
		case spanID:
			s.ID, isRead = readID(b[f.at:next])
		case spanParentID:
			s.Parent, isRead = readID(b[f.at:next])
		case spanTraceState:
			place.State, place.StateField = textAt(f.at, next), uint32(at)
		case spanName:
			s.Name = textAt(f.at, next)
		case spanKind:
			s.Kind = kindNumbered(f.value)
		case spanStart:
			s.Start = f.value
		case spanEnd:
			finish = f.value
		case spanAttributes:
			r.attribute(b[:next], f.at, r.ofSpans)
		case spanEvents:
			isRead = isMessage(b[:next], f.at, messageEvent)
		case spanLinks:
			isRead = isMessage(b[:next], f.at, messageLink)
		case spanStatus:
			isRead = readStatus(&s.Status, b[:next], f.at)
		}
		if !isRead {
			r.Fail(ErrUnread)
			return
		}
		at = next
	}
	if finish > s.Start {
		s.Duration = finish - s.Start
	}
	if s.Last = uint32(len(r.Tags)); len(r.Tags) > r.Limits.Tags {
		r.Fail(spantable.ErrTooMuch)
	}
	r.Places = append(r.Places, place)
}

// readTraceID reads the id of a trace, which has 16 bytes where it is there.
func readTraceID(to *Place, id []byte) bool {
	to.TraceHigh, to.TraceLow = 0, 0
	if len(id) == 16 {
		to.TraceHigh, to.TraceLow = binary.BigEndian.Uint64(id), binary.BigEndian.Uint64(id[8:])
	}
	return len(id) == 16 || len(id) == 0
}

// readID reads the id of a span, which has eight bytes where it is there.
func readID(id []byte) (uint64, bool) {
	if len(id) == 8 {
		return binary.BigEndian.Uint64(id), true
	}
	return 0, len(id) == 0
}

// kindNumbered is the kind of a number.
func kindNumbered(n uint64) spantable.Kind {
	if k := uint32(n); 0 < k && k <= uint32(spantable.KindConsumer) { // it has 32 bits, whatever was written
		return spantable.Kind(k)
	}
	return spantable.KindUnspecified
}

// readStatus reads how a span ended.
func readStatus(to *spantable.Status, b []byte, at int) bool {
	for at < len(b) {
		f, next := readField(b, at)
		if next == 0 {
			return false
		}
		if f.tag == statusCode {
			*to = spantable.Status(min(uint32(f.value), uint32(spantable.StatusOther)))
		}
		at = next
	}
	return true
}

// A format whose spans are those of OpenTelemetry in other words fills a Request by a decoder of its
// own, and has it counted by the same rules. Nothing of it knows where it lies in the body.

// Begin empties the request for a body.
func (r *Request) Begin(body []byte) {
	r.Reset(body, spantable.LimitsOf(len(body), tagBytes))
	r.Places, r.Resources, r.Scopes = r.Places[:0], r.Resources[:0], r.Scopes[:0]
}

// AddResource adds what sent the spans that are placed from now on.
func (r *Request) AddResource(tags []spantable.Tag) {
	if len(r.Resources) >= partsOf(len(r.Body)) {
		r.Fail(spantable.ErrTooMuch)
		return
	}
	of := Resource{Part: Part{First: len(r.Scopes), Last: len(r.Scopes) + 1}, FirstTag: uint32(len(r.Tags))}
	r.Tags = append(r.Tags, tags...)
	of.LastTag = uint32(len(r.Tags))
	r.Resources = append(r.Resources, of)
	r.Scopes = append(r.Scopes, Scope{Part: Part{First: len(r.Places), Last: len(r.Places)}})
}

// AddPlace adds what only OTLP has of the next span, which the resource that was added last has sent.
func (r *Request) AddPlace(p Place) {
	p.Resource, p.Scope = uint32(len(r.Resources)-1), uint32(len(r.Scopes)-1)
	r.Places = append(r.Places, p)
	r.Scopes[p.Scope].Last = len(r.Places)
}

// Field is a field of a message in protobuf: its number and how it is written as one tag, the value of
// a number, and where a text or a message begins and ends.
type Field struct {
	Tag     uint32
	Value   uint64
	At, End int
}

// EachField visits the fields of a message that lies from a place to the end of b, until one is not
// taken. It reports whether all were, and whether it is a message.
func EachField(b []byte, at int, take func(Field) bool) bool {
	for at < len(b) {
		f, next := readField(b, at)
		if next == 0 || !take(Field{f.tag, f.value, f.at, next}) {
			return false
		}
		at = next
	}
	return true
}

// tagBytes is half of what an attribute with a label takes in a body.
const tagBytes = 24

// maxParts bounds the resources of a body, and its scopes.
const maxParts = 1 << 15

func partsOf(body int) int { return min(maxParts, 1<<8+body/64) }

// Bytes is the most that a Request takes for a body of that length, with so many bytes more for
// each span.
func Bytes(body, perSpan int) int {
	const part = int(unsafe.Sizeof(Resource{}) + unsafe.Sizeof(Scope{}))
	table := spantable.LimitsOf(body, tagBytes).Bytes(int(unsafe.Sizeof(Place{})) + perSpan)
	const ahead = attributesAhead * int(unsafe.Sizeof(spantable.Tag{}))
	return table + int(spantable.GrowthFactor*float64(partsOf(body)*part+ahead))
}
