package sampling

import (
	"bytes"

	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	"github.com/spanstatsd/spanstatsd/internal/wire/protolite"
	"google.golang.org/protobuf/encoding/protowire"
)

// A body in which spans are dropped, or resources are marked, is rewritten. The new body contains
// the forwarded spans, unchanged or with another tracestate. Everything around spans is unchanged,
// except for the lengths of the enclosing messages. A scope or resource without a forwarded span is
// dropped, unless it had no spans before.

// Numbers of the fields that are rewritten. The protobuf tag of each of these fields takes one
// byte.
const (
	fieldResourceSpans protolite.Number = 1 // field of a request
	fieldResource      protolite.Number = 1 // field of a ResourceSpans message
	fieldScopeSpans    protolite.Number = 2 // field of a ResourceSpans message
	fieldSpans         protolite.Number = 2 // field of a ScopeSpans message
	fieldTraceState    protolite.Number = 3 // field of a span
)

// fieldSize returns the length of a field that contains a message of the given size: its tag, its
// length and the message. It is 0 for droppedSize.
func fieldSize(size int) int {
	if size == droppedSize {
		return 0
	}
	return protolite.Size(size)
}

// measure computes the new length of each message, from scopes to resources, and returns the new
// length of the body. Each length starts from the old one, and changes by the difference of each
// inner field. A message that had no spans before is kept.
func (s *Sample) measure() (size int) {
	r := s.request
	s.scopes = s.scopes[:0]
	for i := range r.Scopes {
		scope := &r.Scopes[i]
		scopeSize, isKept := scope.End-scope.Body, scope.First == scope.Last
		for span := scope.First; span < scope.Last; span++ {
			oldField := int(r.Extras[span].End - r.Extras[span].At)
			newField := s.spanFieldSize(span)
			scopeSize += newField - oldField
			isKept = isKept || newField > 0
		}
		s.scopes = append(s.scopes, sizeIf(isKept, scopeSize))
	}
	size = len(r.Body)
	for i := range r.Resources {
		resource, result := &r.Resources[i], &s.resources[i]
		resourceSize, isKept := resource.End-resource.Body, resource.First == resource.Last
		for scope := resource.First; scope < resource.Last; scope++ {
			oldField := r.Scopes[scope].End - r.Scopes[scope].At
			resourceSize += fieldSize(s.scopes[scope]) - oldField
			isKept = isKept || s.scopes[scope] != droppedSize
		}
		if result.isMarked {
			resourceSize += fieldSize(result.markedSize) - attributesBytes(resource)
		}
		result.size = sizeIf(isKept, resourceSize)
		oldField := resource.End - resource.At
		size += fieldSize(result.size) - oldField
	}
	return size
}

// sizeIf returns size if isKept is true, otherwise droppedSize.
func sizeIf(isKept bool, size int) int {
	if isKept {
		return size
	}
	return droppedSize
}

// attributesBytes returns the length of the field that contains a resource's attributes, or 0 if
// there is no such field.
func attributesBytes(resource *otlp.Resource) int {
	if resource.MessageField == 0 {
		return 0
	}
	return int(resource.Message.At+resource.Message.Len) - resource.MessageField
}

// spanFieldSize returns the new length of a span's field, or 0 if the span is dropped.
func (s *Sample) spanFieldSize(span int) int {
	extra := &s.request.Extras[span]
	switch s.decisions[span] {
	case dropped:
		return 0
	case raised:
		return fieldSize(s.raisedSize(extra))
	}
	return int(extra.End - extra.At)
}

// raisedSize returns the length of a span's message after its threshold is raised.
func (s *Sample) raisedSize(extra *otlp.SpanExtra) int {
	begin, end := stateField(extra)
	return int(extra.End-extra.Body) - int(end-begin) + fieldSize(len(s.raisedState(extra)))
}

// raisedState returns a span's tracestate with the raised threshold. It is valid until the next
// call.
func (s *Sample) raisedState(extra *otlp.SpanExtra) []byte {
	text := s.request.Bytes(extra.State)
	s.raised = s.states.Read(text).AppendWith(s.raised[:0], text, s.threshold)
	return s.raised
}

// stateField returns the start and end offsets of a span's tracestate field. A span without the
// field gets one at its end, so both are the end of the span.
func stateField(extra *otlp.SpanExtra) (begin, end uint32) {
	if extra.StateField == 0 {
		return extra.End, extra.End
	}
	return extra.StateField, extra.State.At + extra.State.Len
}

// AppendSelected appends the forwarded part of the request. It must not be called if
// Selection.IsUnchanged is set.
func (s *Sample) AppendSelected(dst []byte) []byte {
	r, copied := s.request, 0 // copied is the offset up to which the body is processed
	for i := range r.Resources {
		resource := &r.Resources[i]
		dst = append(dst, r.Body[copied:resource.At]...)
		dst, copied = s.appendResource(dst, resource, &s.resources[i]), resource.End
	}
	return append(dst, r.Body[copied:]...)
}

// appendResource appends a resource with its forwarded scopes. If the resource is marked, its
// attributes are replaced by marked ones, or added at the start if it has none.
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
		extra := &r.Extras[span]
		dst, from = append(dst, r.Body[from:extra.At]...), int(extra.End)
		if s.decisions[span] == raised {
			dst = s.appendRaised(dst, extra)
		}
	}
	return append(dst, r.Body[from:bounds.End]...)
}

// appendRaised appends a span with the raised threshold.
func (s *Sample) appendRaised(dst []byte, extra *otlp.SpanExtra) []byte {
	body := s.request.Body
	begin, end := stateField(extra)
	dst = protolite.AppendHead(dst, fieldSpans, s.raisedSize(extra))
	dst = append(dst, body[extra.Body:begin]...)
	state := s.raisedState(extra)
	dst = append(protolite.AppendHead(dst, fieldTraceState, len(state)), state...)
	return append(dst, body[end:extra.End]...)
}

// The mark is a resource attribute that tells the receiver that the spans of the resource have been
// counted. It takes precedence over the request header with the same meaning, and reaches servers
// that the header does not: a Collector forwards messages but not headers, and the agent's gRPC
// server does not read headers.

// Numbers of fields of a resource and of an attribute.
const (
	fieldAttributes protowire.Number = 1
	fieldKey        protowire.Number = 1
	fieldValue      protowire.Number = 2
	fieldText       protowire.Number = 1
)

// mark is the encoded field of a resource that contains the mark with the value true.
var mark = func() []byte {
	pair := protolite.AppendBytes(nil, fieldKey, otlp.StatsComputed)
	pair = protolite.AppendBytes(pair, fieldValue, protolite.AppendBytes(nil, fieldText, "true"))
	return protolite.AppendBytes(nil, fieldAttributes, pair)
}()

// eachField calls visit for each field of a resource message. isMark reports whether the field is
// the mark, with any value. The decoder must have validated the message.
func eachField(resource []byte, visit func(field []byte, isMark bool)) {
	for len(resource) > 0 {
		number, wireType, size := protowire.ConsumeField(resource)
		isMark := false
		if number == fieldAttributes && wireType == protowire.BytesType {
			_, _, tagSize := protowire.ConsumeTag(resource)
			pair, _ := protowire.ConsumeBytes(resource[tagSize:])
			isMark = string(keyOf(pair)) == otlp.StatsComputed
		}
		visit(resource[:size], isMark)
		resource = resource[size:]
	}
}

// keyOf returns the key of a resource attribute, an encoded KeyValue message.
func keyOf(pair []byte) (key []byte) {
	for f := range protolite.Fields(pair) {
		if f.Number == fieldKey && f.Bytes != nil {
			key = f.Bytes
		}
	}
	return key
}

// markedSize returns the length of a resource message after the mark is set. isChanged is false if
// the message contains the mark already, exactly once and with the value true.
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

// appendMarked appends a resource message with the mark set exactly once.
func appendMarked(dst, resource []byte) []byte {
	eachField(resource, func(field []byte, isMark bool) {
		if !isMark {
			dst = append(dst, field...)
		}
	})
	return append(dst, mark...)
}
