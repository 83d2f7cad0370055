package sampling

import (
	"bytes"
	"iter"

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

// fieldSize returns the encoded length of a protobuf field that contains a message: tag, length and message.
// It returns 0 if messageSize is droppedSize.
func fieldSize(messageSize int) int {
	if messageSize == droppedSize {
		return 0
	}
	return protolite.FieldSize(messageSize)
}

// computeSizes returns the length of the forwarded request, without the dropped spans. It also stores
// the new length of each ScopeSpans message in s.scopeSizes, and of each ResourceSpans message in
// s.resources.
func (s *Sample) computeSizes() (requestSize int) {
	s.scopeSizes = s.scopeSizes[:0]
	for i := range s.request.Scopes {
		newSize := s.scopeSize(&s.request.Scopes[i])
		s.scopeSizes = append(s.scopeSizes, newSize)
	}
	requestSize = len(s.request.Body)
	for i := range s.request.Resources {
		resource := &s.request.Resources[i]
		newSize := s.resourceSize(resource, &s.resources[i])
		s.resources[i].size = newSize // AppendSelected reads it
		oldFieldSize := resource.FieldEnd - resource.FieldStart
		requestSize += fieldSize(newSize) - oldFieldSize
	}
	return requestSize
}

// scopeSize returns the length of a ScopeSpans message without its dropped spans. It returns droppedSize if the
// message is left out, because all its spans are dropped. A message that was received without spans keeps its length.
func (s *Sample) scopeSize(scope *otlp.Scope) int {
	size := scope.FieldEnd - scope.MessageStart // length of the received message
	hasSpans := scope.ListStart < scope.ListEnd
	hasForwarded := false
	for span := scope.ListStart; span < scope.ListEnd; span++ {
		received := &s.request.Extras[span]
		size -= int(received.FieldEnd - received.FieldStart)
		size += s.spanFieldSize(span) // 0 if the span is dropped
		if s.decisions[span] != drop {
			hasForwarded = true
		}
	}
	if hasSpans && !hasForwarded {
		return droppedSize
	}
	return size
}

// resourceSize returns the new length of a ResourceSpans message, given the new lengths of its scopes in s.scopeSizes.
// It returns droppedSize if the message is left out, because all its scopes are left out. A message that was received
// without scopes is kept. If result.isMarked, the length includes the added attribute.
func (s *Sample) resourceSize(resource *otlp.Resource, result *resourceResult) int {
	size := resource.FieldEnd - resource.MessageStart // length of the received message
	hasScopes := resource.ListStart < resource.ListEnd
	hasKeptScope := false
	for scope := resource.ListStart; scope < resource.ListEnd; scope++ {
		received := &s.request.Scopes[scope]
		size -= received.FieldEnd - received.FieldStart
		size += fieldSize(s.scopeSizes[scope]) // 0 for a scope that is left out
		if s.scopeSizes[scope] != droppedSize {
			hasKeptScope = true
		}
	}
	if hasScopes && !hasKeptScope {
		return droppedSize
	}
	if result.isMarked { // the field "resource" is replaced
		size -= resourceFieldSize(resource)
		size += fieldSize(result.markedSize)
	}
	return size
}

// resourceFieldSize returns the encoded length of the field "resource" in a received ResourceSpans message,
// including tag and length. It returns 0 if the message has no such field.
func resourceFieldSize(received *otlp.Resource) int {
	fieldStart := received.MessageField // position in the request; 0 without such a field
	if fieldStart == 0 {
		return 0
	}
	fieldEnd := int(received.Message.Start + received.Message.Len)
	return fieldEnd - fieldStart
}

// spanFieldSize returns the encoded length of a span in the forwarded request, as a protobuf field with its tag and
// length. It returns 0 if the span is dropped.
func (s *Sample) spanFieldSize(span int) int {
	received := &s.request.Extras[span]
	switch s.decisions[span] {
	case drop:
		return 0
	case forwardWithThreshold:
		return fieldSize(s.sizeWithThreshold(received))
	default:
		return int(received.FieldEnd - received.FieldStart)
	}
}

// sizeWithThreshold returns the length of a span's message after its tracestate is replaced by one with the
// threshold s.threshold.
func (s *Sample) sizeWithThreshold(extra *otlp.SpanExtra) int {
	size := int(extra.FieldEnd - extra.MessageStart) // length of the received message, the last part of its field
	begin, end := stateField(extra)
	size -= int(end - begin)
	size += fieldSize(len(s.stateWithThreshold(extra)))
	return size
}

// stateWithThreshold returns a span's tracestate with the threshold s.threshold. The result is valid until
// the next call.
func (s *Sample) stateWithThreshold(extra *otlp.SpanExtra) []byte {
	text := s.request.Bytes(extra.State)
	state := s.states.Read(text)
	s.newState = state.WithThreshold(s.newState, text, s.threshold)
	return s.newState
}

// stateField returns the start and the end of a span's tracestate field in the request. If the span has no
// such field, it returns the end of the span twice: an empty range at which a field can be inserted.
func stateField(extra *otlp.SpanExtra) (begin, end uint32) {
	hasField := extra.StateFieldStart != 0
	if !hasField {
		return extra.FieldEnd, extra.FieldEnd
	}
	stateText := extra.State // the last part of the field
	return extra.StateFieldStart, stateText.Start + stateText.Len
}

// AppendSelected appends the forwarded request, without the dropped spans, to dst. It must be called
// after Select. If Selection.IsUnchanged is set, the caller must forward the original request instead.
func (s *Sample) AppendSelected(dst []byte) []byte {
	body := s.request.Body
	next := 0 // first byte of the request that is not yet copied or dropped
	for i := range s.request.Resources {
		resource := &s.request.Resources[i]
		dst = append(dst, body[next:resource.FieldStart]...)
		dst = s.appendResource(dst, resource, &s.resources[i])
		next = resource.FieldEnd
	}
	return append(dst, body[next:]...)
}

// appendResource appends a ResourceSpans field without its dropped scopes, or nothing if all of them
// are dropped. If result.isMarked, the field "resource" in it gets the attribute otlp.StatsComputed.
func (s *Sample) appendResource(dst []byte, resource *otlp.Resource, result *resourceResult) []byte {
	if result.size == droppedSize {
		return dst
	}
	dst = protolite.AppendHead(dst, fieldResourceSpans, result.size)
	hasResourceField := resource.MessageField != 0 // appendBetweenScopes marks it where it is copied
	if result.isMarked && !hasResourceField {
		dst = s.appendMarkedResource(dst, resource, result)
	}
	next := resource.MessageStart // first byte of the request that is not yet copied or dropped
	for i := resource.ListStart; i < resource.ListEnd; i++ {
		scope := &s.request.Scopes[i]
		dst = s.appendBetweenScopes(dst, next, scope.FieldStart, resource, result)
		dst = s.appendScope(dst, i)
		next = scope.FieldEnd
	}
	return s.appendBetweenScopes(dst, next, resource.FieldEnd, resource, result)
}

// appendBetweenScopes appends the bytes from start to end of the received request. They must belong to a ResourceSpans
// message, and contain none of its scopes. If result.isMarked, and the bytes contain the field "resource", it adds the
// attribute otlp.StatsComputed to the field.
func (s *Sample) appendBetweenScopes(
	dst []byte, start, end int, resource *otlp.Resource, result *resourceResult,
) []byte {
	body := s.request.Body
	fieldStart := resource.MessageField
	containsField := start <= fieldStart && fieldStart < end
	replacesField := containsField && result.isMarked
	if !replacesField {
		return append(dst, body[start:end]...)
	}
	fieldEnd := fieldStart + resourceFieldSize(resource)
	dst = append(dst, body[start:fieldStart]...)
	dst = s.appendMarkedResource(dst, resource, result)
	return append(dst, body[fieldEnd:end]...)
}

// appendMarkedResource appends the field "resource" with the attribute otlp.StatsComputed.
func (s *Sample) appendMarkedResource(dst []byte, resource *otlp.Resource, result *resourceResult) []byte {
	dst = protolite.AppendHead(dst, fieldResource, result.markedSize)
	return appendMarked(dst, s.request.Bytes(resource.Message))
}

// appendScope appends the ScopeSpans field with the given index in the request, without its dropped
// spans. It appends nothing if all of them are dropped. Spans that were sampled here get a new tracestate.
func (s *Sample) appendScope(dst []byte, index int) []byte {
	newSize := s.scopeSizes[index]
	if newSize == droppedSize {
		return dst
	}
	dst = protolite.AppendHead(dst, fieldScopeSpans, newSize)
	body := s.request.Body
	scope := &s.request.Scopes[index]
	next := scope.MessageStart // first byte of the request that is not yet copied or dropped
	for span := scope.ListStart; span < scope.ListEnd; span++ {
		received := &s.request.Extras[span]
		dst = append(dst, body[next:received.FieldStart]...)
		switch s.decisions[span] {
		case drop:
		case forwardWithThreshold:
			dst = s.appendWithThreshold(dst, received)
		default:
			dst = append(dst, body[received.FieldStart:received.FieldEnd]...)
		}
		next = int(received.FieldEnd)
	}
	return append(dst, body[next:scope.FieldEnd]...)
}

// appendWithThreshold appends a span whose tracestate is replaced by one with the threshold s.threshold.
func (s *Sample) appendWithThreshold(dst []byte, extra *otlp.SpanExtra) []byte {
	body := s.request.Body
	begin, end := stateField(extra)
	dst = protolite.AppendHead(dst, fieldSpans, s.sizeWithThreshold(extra))
	dst = append(dst, body[extra.MessageStart:begin]...)
	dst = protolite.AppendBytes(dst, fieldTraceState, s.stateWithThreshold(extra))
	return append(dst, body[end:extra.FieldEnd]...)
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

// resourceFields iterates over the encoded fields of a resource message, which must be valid protobuf.
// isMark is true for a field that contains the attribute otlp.StatsComputed, with any value.
func resourceFields(resource []byte) iter.Seq2[[]byte, bool] {
	return func(yield func(field []byte, isMark bool) bool) {
		for len(resource) > 0 {
			_, _, size := protowire.ConsumeField(resource)
			field := resource[:size]
			if !yield(field, containsMark(field)) {
				return
			}
			resource = resource[size:]
		}
	}
}

// containsMark reports whether a field of a resource message contains the attribute otlp.StatsComputed.
func containsMark(field []byte) bool {
	number, wireType, tagSize := protowire.ConsumeTag(field)
	isAttribute := number == fieldAttributes && wireType == protowire.BytesType
	if !isAttribute {
		return false
	}
	attribute, _ := protowire.ConsumeBytes(field[tagSize:])
	return string(attributeKey(attribute)) == otlp.StatsComputed
}

// attributeKey returns the key of a resource attribute, an encoded KeyValue message, or nil if it has
// no key. If the message contains several keys, the last one counts, as usual in protobuf.
func attributeKey(attribute []byte) (key []byte) {
	for field := range protolite.Fields(attribute) {
		if field.Number == fieldKey && field.Bytes != nil {
			key = field.Bytes
		}
	}
	return key
}

// markedSize returns the length that a resource message has with the attribute otlp.StatsComputed set to
// true. isChanged is false if the message already contains this attribute exactly once, with the value
// true.
func markedSize(resource []byte) (size int, isChanged bool) {
	size = len(resource) + len(mark)
	marks := 0
	hasTrueMark := false
	for field, isMark := range resourceFields(resource) {
		if !isMark {
			continue
		}
		size -= len(field) // appendMarked removes it
		marks++
		if bytes.Equal(field, mark) {
			hasTrueMark = true
		}
	}
	isAlreadyMarked := hasTrueMark && marks == 1
	return size, !isAlreadyMarked
}

// appendMarked appends a resource message to dst, and sets its attribute otlp.StatsComputed to true.
// Other occurrences of the attribute are removed.
func appendMarked(dst, resource []byte) []byte {
	for field, isMark := range resourceFields(resource) {
		if !isMark {
			dst = append(dst, field...)
		}
	}
	return append(dst, mark...)
}
