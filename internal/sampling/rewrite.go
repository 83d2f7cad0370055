package sampling

import (
	"bytes"

	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	"github.com/spanstatsd/spanstatsd/internal/wire/protolite"
	"google.golang.org/protobuf/encoding/protowire"
)

// A body of which spans end, or resources say something else, is written anew: what lies around
// spans as it is, those that go on as they are or with another tracestate, and of each message
// that has them its new length. A scope, or a resource, of which no span goes on ends too.

// The numbers of the fields of OTLP's messages that are written anew. A field of one of them
// has a tag of one byte.
const (
	fieldResourceSpans protolite.Number = 1 // of a request
	fieldResource      protolite.Number = 1
	fieldScopeSpans    protolite.Number = 2 // of a resource's spans
	fieldSpans         protolite.Number = 2 // of a scope's spans
	fieldTraceState    protolite.Number = 3 // of a span
)

// fieldSize is the bytes of a message with its tag and length.
func fieldSize(size int) int {
	if size == nothingLeft {
		return 0
	}
	return protolite.Size(size)
}

// measure finds out how long each message will be, and returns how long the body.
func (s *Sample) measure() (size int) {
	r := s.request
	s.scopes = s.scopes[:0]
	for i := range r.Scopes {
		of := &r.Scopes[i]
		size, isKept := of.End-of.Body, of.First == of.Last
		for span := of.First; span < of.Last; span++ {
			place := &r.Places[span]
			left := s.spanSize(span)
			size += left - int(place.End-place.At)
			isKept = isKept || left > 0
		}
		s.scopes = append(s.scopes, sizeIf(isKept, size))
	}
	size = len(r.Body)
	for i := range r.Resources {
		of, left := &r.Resources[i], &s.resources[i]
		inner, isKept := of.End-of.Body, of.First == of.Last
		for scope := of.First; scope < of.Last; scope++ {
			inner += fieldSize(s.scopes[scope]) - (r.Scopes[scope].End - r.Scopes[scope].At)
			isKept = isKept || s.scopes[scope] != nothingLeft
		}
		if left.isMarked {
			inner += fieldSize(left.markedSize) - saidBytes(of)
		}
		left.size = sizeIf(isKept, inner)
		size += fieldSize(left.size) - (of.End - of.At)
	}
	return size
}

func sizeIf(isKept bool, size int) int {
	if isKept {
		return size
	}
	return nothingLeft
}

// saidBytes is how many bytes the field has that says who a resource is.
func saidBytes(of *otlp.Resource) int {
	if of.SaidField == 0 {
		return 0
	}
	return int(of.Said.At+of.Said.Len) - of.SaidField
}

// spanSize is the bytes of a span with its tag and length, as it will be.
func (s *Sample) spanSize(span int) int {
	place := &s.request.Places[span]
	switch s.fates[span] {
	case ended:
		return 0
	case raised:
		return fieldSize(s.raisedSize(place))
	}
	return int(place.End - place.At)
}

// raisedSize is how long a span's message is with another threshold.
func (s *Sample) raisedSize(place *otlp.Place) int {
	before, behind := stateField(place)
	return int(place.End-place.Body) - int(behind-before) + fieldSize(len(s.raisedState(place)))
}

// raisedState is a span's tracestate with another threshold. It is good until the next.
func (s *Sample) raisedState(place *otlp.Place) []byte {
	text := s.request.Bytes(place.State)
	s.raised = s.states.Read(text).AppendWith(s.raised[:0], text, s.threshold)
	return s.raised
}

// stateField is where the field of a span's tracestate begins and ends. One that is not there
// stands last.
func stateField(place *otlp.Place) (begin, end uint32) {
	if place.StateField == 0 {
		return place.End, place.End
	}
	return place.StateField, place.State.At + place.State.Len
}

// AppendSelected appends the part of the request that Select has chosen.
func (s *Sample) AppendSelected(dst []byte) []byte {
	r, from := s.request, 0
	for i := range r.Resources {
		of := &r.Resources[i]
		dst = append(dst, r.Body[from:of.At]...)
		dst, from = s.appendResource(dst, of, &s.resources[i]), of.End
	}
	return append(dst, r.Body[from:]...)
}

func (s *Sample) appendResource(dst []byte, of *otlp.Resource, left *resourceLeft) []byte {
	if left.size == nothingLeft {
		return dst
	}
	r := s.request
	dst = protolite.AppendHead(dst, fieldResourceSpans, left.size)
	if left.isMarked && of.SaidField == 0 {
		dst = s.appendSaid(dst, of, left)
	}
	// around writes what lies around the scopes, with the message of who it is as it will be.
	around := func(from, to int) {
		if left.isMarked && from <= of.SaidField && of.SaidField < to {
			dst = s.appendSaid(append(dst, r.Body[from:of.SaidField]...), of, left)
			from = of.SaidField + saidBytes(of)
		}
		dst = append(dst, r.Body[from:to]...)
	}
	from := of.Body
	for i := of.First; i < of.Last; i++ {
		around(from, r.Scopes[i].At)
		dst, from = s.appendScope(dst, i), r.Scopes[i].End
	}
	around(from, of.End)
	return dst
}

// appendSaid writes the field that says who a marked resource is.
func (s *Sample) appendSaid(dst []byte, of *otlp.Resource, left *resourceLeft) []byte {
	return appendMarked(protolite.AppendHead(dst, fieldResource, left.markedSize), s.request.Bytes(of.Said))
}

func (s *Sample) appendScope(dst []byte, scope int) []byte {
	if s.scopes[scope] == nothingLeft {
		return dst
	}
	r, of := s.request, &s.request.Scopes[scope]
	dst = protolite.AppendHead(dst, fieldScopeSpans, s.scopes[scope])
	from := of.Body
	for span := of.First; span < of.Last; span++ {
		if s.fates[span] == goesOn {
			continue // with what is around it
		}
		place := &r.Places[span]
		dst, from = append(dst, r.Body[from:place.At]...), int(place.End)
		if s.fates[span] == raised {
			dst = s.appendRaised(dst, place)
		}
	}
	return append(dst, r.Body[from:of.End]...)
}

// appendRaised writes a span with another threshold.
func (s *Sample) appendRaised(dst []byte, place *otlp.Place) []byte {
	body := s.request.Body
	before, behind := stateField(place)
	dst = protolite.AppendHead(dst, fieldSpans, s.raisedSize(place))
	dst = append(dst, body[place.Body:before]...)
	state := s.raisedState(place)
	dst = append(protolite.AppendHead(dst, fieldTraceState, len(state)), state...)
	return append(dst, body[behind:place.End]...)
}

// A resource says by an attribute whether statistics of its spans were made before. It goes
// before the header of the request, and arrives where that does not: a Collector hands on what a
// message says, and the agent's own server of gRPC reads no header.

// The numbers of the fields of a resource and of an attribute.
const (
	fieldAttributes protowire.Number = 1
	fieldKey        protowire.Number = 1
	fieldValue      protowire.Number = 2
	fieldText       protowire.Number = 1
)

// mark is the attribute as a field of a resource, that it says true.
var mark = func() []byte {
	pair := protolite.AppendBytes(nil, fieldKey, otlp.StatsComputed)
	pair = protolite.AppendBytes(pair, fieldValue, protolite.AppendBytes(nil, fieldText, "true"))
	return protolite.AppendBytes(nil, fieldAttributes, pair)
}()

// eachField visits the fields of a resource, and says of each whether it is the attribute,
// whatever that says. The decoder has found all of them to be written as they must be.
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

// keyOf is the name of an attribute.
func keyOf(pair []byte) (key []byte) {
	for f := range protolite.Fields(pair) {
		if f.Number == fieldKey && f.Bytes != nil {
			key = f.Bytes
		}
	}
	return key
}

// marked is how long a resource is that says true, once. One that says so already stays as it
// is.
func marked(resource []byte) (size int, isChanged bool) {
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

// appendMarked writes a resource that says true.
func appendMarked(dst, resource []byte) []byte {
	eachField(resource, func(field []byte, isMark bool) {
		if !isMark {
			dst = append(dst, field...)
		}
	})
	return append(dst, mark...)
}
