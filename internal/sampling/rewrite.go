package sampling

import (
	"bytes"

	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	"github.com/spanstatsd/spanstatsd/internal/wire/protolite"
	"google.golang.org/protobuf/encoding/protowire"
)

// A body in which spans are dropped, or resources are marked, is rewritten: it contains the forwarded
// spans, unchanged or with another tracestate, everything around spans unchanged, and the new lengths of
// the enclosing messages. A scope or resource without a forwarded span is dropped as well.

// Numbers of fields that are rewritten. Each of these tags takes one byte.
const (
	fieldResourceSpans protolite.Number = 1 // of a request
	fieldResource      protolite.Number = 1
	fieldScopeSpans    protolite.Number = 2 // of a resource's spans
	fieldSpans         protolite.Number = 2 // of a scope's spans
	fieldTraceState    protolite.Number = 3 // of a span
)

// fieldSize returns the length of a message including its tag and length, or 0 if it is dropped.
func fieldSize(size int) int {
	if size == droppedSize {
		return 0
	}
	return protolite.Size(size)
}

// measure computes the new length of each message, from the innermost outwards, and returns the
// length of the body.
func (s *Sample) measure() (size int) {
	r := s.request
	s.scopes = s.scopes[:0]
	for i := range r.Scopes {
		scope := &r.Scopes[i]
		size, isKept := scope.End-scope.Body, scope.First == scope.Last
		for span := scope.First; span < scope.Last; span++ {
			place := &r.Extras[span]
			newSize := s.spanSize(span)
			size += newSize - int(place.End-place.At)
			isKept = isKept || newSize > 0
		}
		s.scopes = append(s.scopes, sizeIf(isKept, size))
	}
	size = len(r.Body)
	for i := range r.Resources {
		resource, result := &r.Resources[i], &s.resources[i]
		inner, isKept := resource.End-resource.Body, resource.First == resource.Last
		for scope := resource.First; scope < resource.Last; scope++ {
			inner += fieldSize(s.scopes[scope]) - (r.Scopes[scope].End - r.Scopes[scope].At)
			isKept = isKept || s.scopes[scope] != droppedSize
		}
		if result.isMarked {
			inner += fieldSize(result.markedSize) - attributesBytes(resource)
		}
		result.size = sizeIf(isKept, inner)
		size += fieldSize(result.size) - (resource.End - resource.At)
	}
	return size
}

func sizeIf(isKept bool, size int) int {
	if isKept {
		return size
	}
	return droppedSize
}

// attributesBytes returns the length of a resource's field that contains its attributes.
func attributesBytes(resource *otlp.Resource) int {
	if resource.MessageField == 0 {
		return 0
	}
	return int(resource.Message.At+resource.Message.Len) - resource.MessageField
}

// spanSize returns the new length of a span including its tag and length.
func (s *Sample) spanSize(span int) int {
	place := &s.request.Extras[span]
	switch s.decisions[span] {
	case dropped:
		return 0
	case raised:
		return fieldSize(s.raisedSize(place))
	}
	return int(place.End - place.At)
}

// raisedSize returns the length of a span's message with another threshold.
func (s *Sample) raisedSize(place *otlp.SpanExtra) int {
	begin, end := stateField(place)
	return int(place.End-place.Body) - int(end-begin) + fieldSize(len(s.raisedState(place)))
}

// raisedState returns a span's tracestate with another threshold. It is valid until the next call.
func (s *Sample) raisedState(place *otlp.SpanExtra) []byte {
	text := s.request.Bytes(place.State)
	s.raised = s.states.Read(text).AppendWith(s.raised[:0], text, s.threshold)
	return s.raised
}

// stateField returns the offsets of a span's tracestate field. If there is none, both are the end
// of the span.
func stateField(place *otlp.SpanExtra) (begin, end uint32) {
	if place.StateField == 0 {
		return place.End, place.End
	}
	return place.StateField, place.State.At + place.State.Len
}

// AppendSelected appends the body that Measure has measured.
func (s *Sample) AppendSelected(dst []byte) []byte {
	r, from := s.request, 0
	for i := range r.Resources {
		of := &r.Resources[i]
		dst = append(dst, r.Body[from:of.At]...)
		dst, from = s.appendResource(dst, of, &s.resources[i]), of.End
	}
	return append(dst, r.Body[from:]...)
}

// appendResource appends a resource with its forwarded scopes, and its attributes marked if
// necessary.
func (s *Sample) appendResource(dst []byte, resource *otlp.Resource, result *resourceResult) []byte {
	if result.size == droppedSize {
		return dst
	}
	r := s.request
	dst = protolite.AppendHead(dst, fieldResourceSpans, result.size)
	if result.isMarked && resource.MessageField == 0 {
		dst = s.appendAttributes(dst, resource, result)
	}
	// appendAround appends the bytes between scopes, with the attributes marked if they are among them.
	appendAround := func(from, to int) {
		if result.isMarked && from <= resource.MessageField && resource.MessageField < to {
			dst = s.appendAttributes(append(dst, r.Body[from:resource.MessageField]...), resource, result)
			from = resource.MessageField + attributesBytes(resource)
		}
		dst = append(dst, r.Body[from:to]...)
	}
	from := resource.Body
	for i := resource.First; i < resource.Last; i++ {
		appendAround(from, r.Scopes[i].At)
		dst, from = s.appendScope(dst, i), r.Scopes[i].End
	}
	appendAround(from, resource.End)
	return dst
}

// appendAttributes appends the field with the attributes of a marked resource.
func (s *Sample) appendAttributes(dst []byte, resource *otlp.Resource, result *resourceResult) []byte {
	return appendMarked(protolite.AppendHead(dst, fieldResource, result.markedSize), s.request.Bytes(resource.Message))
}

// appendScope appends a scope with its forwarded spans.
func (s *Sample) appendScope(dst []byte, scope int) []byte {
	if s.scopes[scope] == droppedSize {
		return dst
	}
	r, bounds := s.request, &s.request.Scopes[scope]
	dst = protolite.AppendHead(dst, fieldScopeSpans, s.scopes[scope])
	from := bounds.Body
	for span := bounds.First; span < bounds.Last; span++ {
		if s.decisions[span] == forwarded {
			continue // copied with the bytes around it
		}
		place := &r.Extras[span]
		dst, from = append(dst, r.Body[from:place.At]...), int(place.End)
		if s.decisions[span] == raised {
			dst = s.appendRaised(dst, place)
		}
	}
	return append(dst, r.Body[from:bounds.End]...)
}

// appendRaised appends a span with another threshold.
func (s *Sample) appendRaised(dst []byte, place *otlp.SpanExtra) []byte {
	body := s.request.Body
	begin, end := stateField(place)
	dst = protolite.AppendHead(dst, fieldSpans, s.raisedSize(place))
	dst = append(dst, body[place.Body:begin]...)
	state := s.raisedState(place)
	dst = append(protolite.AppendHead(dst, fieldTraceState, len(state)), state...)
	return append(dst, body[end:place.End]...)
}

// A resource attribute states that the spans of the resource have been counted. It takes precedence over
// the request header with the same meaning, and reaches servers that the header does not: a Collector
// forwards messages but not headers, and the agent's gRPC server does not read headers.

// Numbers of fields of a resource and of an attribute.
const (
	fieldAttributes protowire.Number = 1
	fieldKey        protowire.Number = 1
	fieldValue      protowire.Number = 2
	fieldText       protowire.Number = 1
)

// mark is the attribute with the value true, as a field of a resource.
var mark = func() []byte {
	pair := protolite.AppendBytes(nil, fieldKey, otlp.StatsComputed)
	pair = protolite.AppendBytes(pair, fieldValue, protolite.AppendBytes(nil, fieldText, "true"))
	return protolite.AppendBytes(nil, fieldAttributes, pair)
}()

// eachField calls visit for each field of a resource. isMark reports whether the field is the
// attribute, with any value. The decoder has validated the resource before.
func eachField(resource []byte, visit func(field []byte, isMark bool)) {
	for len(resource) > 0 {
		number, as, size := protowire.ConsumeField(resource)
		isMark := false
		if number == fieldAttributes && as == protowire.BytesType {
			_, _, tag := protowire.ConsumeTag(resource)
			pair, _ := protowire.ConsumeBytes(resource[tag:])
			isMark = string(keyOf(pair)) == otlp.StatsComputed
		}
		visit(resource[:size], isMark)
		resource = resource[size:]
	}
}

// keyOf returns the key of an attribute.
func keyOf(pair []byte) (key []byte) {
	for f := range protolite.Fields(pair) {
		if f.Number == fieldKey && f.Bytes != nil {
			key = f.Bytes
		}
	}
	return key
}

// markedSize returns the length of a resource that has the mark exactly once. isChanged is false if
// the resource has that already.
func markedSize(resource []byte) (size int, isChanged bool) {
	size = len(resource) + len(mark)
	marks, isTrue := 0, false
	eachField(resource, func(field []byte, isMark bool) {
		if isMark {
			marks++
			size -= len(field)
			isTrue = bytes.Equal(field, mark)
		}
	})
	return size, marks != 1 || !isTrue
}

// appendMarked appends a resource with the mark exactly once.
func appendMarked(dst, resource []byte) []byte {
	eachField(resource, func(field []byte, isMark bool) {
		if !isMark {
			dst = append(dst, field...)
		}
	})
	return append(dst, mark...)
}
