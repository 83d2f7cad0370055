package zipkin

import (
	"encoding/binary"

	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// Span kinds by their number in protobuf, and their names in JSON.
var (
	kinds = [...]spantable.Kind{
		spantable.KindInternal, spantable.KindClient, spantable.KindServer, spantable.KindProducer,
		spantable.KindConsumer,
	}
	kindNames = [len(kinds)]string{"", "CLIENT", "SERVER", "PRODUCER", "CONSUMER"}
)

// Wire types of protobuf.
const asVarint, asFixed64, asBytes = 0, 1, 2

// Tags of the fields that are read: field number and wire type.
const (
	listSpans = 1<<3 | asBytes

	spanTraceID        = 1<<3 | asBytes
	spanParentID       = 2<<3 | asBytes
	spanID             = 3<<3 | asBytes
	spanKind           = 4<<3 | asVarint
	spanName           = 5<<3 | asBytes
	spanTimestamp      = 6<<3 | asFixed64
	spanDuration       = 7<<3 | asVarint
	spanLocalEndpoint  = 8<<3 | asBytes
	spanRemoteEndpoint = 9<<3 | asBytes
	spanTags           = 11<<3 | asBytes
	spanShared         = 13<<3 | asVarint
)

// Protobuf decodes body, a Zipkin ListOfSpans message, into r. It keeps only the span attributes in
// spanNames and the resource attributes in resourceNames. It returns an error if body is invalid or
// exceeds a limit.
func (d *Decoder) Protobuf(r *otlp.Request, body []byte, spanNames, resourceNames *spantable.Names) error {
	d.begin(r, body, spanNames, resourceNames)
	const start = 0 // of the message in body
	isValid := otlp.EachField(body, start, func(f otlp.Field) bool {
		isUnknown := f.Tag != listSpans
		return isUnknown || d.readSpanMessage(f)
	})
	if !isValid {
		r.Fail(ErrUnparsable) // keeps an earlier error
	}
	return r.Err() //nolint:wrapcheck // already says what to do
}

// readSpanMessage reads the span in a field, and adds it to the table. It returns false if the span is invalid
// or exceeds a limit.
func (d *Decoder) readSpanMessage(f otlp.Field) (isValid bool) {
	d.beginSpan()
	isValid = otlp.EachField(d.Body[:f.End], f.Start, d.applySpanField)
	return isValid && d.endSpan() == nil
}

// applySpanField stores the value of f, a field of a Zipkin span, in the current span. It returns false
// if the value is invalid. It ignores unknown fields.
func (d *Decoder) applySpanField(f otlp.Field) (isValid bool) {
	s := &d.span
	text := f.Text()
	isValid = true
	switch f.Tag {
	case spanTraceID:
		d.extra.TraceHigh, d.extra.TraceLow, isValid = parseID(d.table.Bytes(text))
	case spanParentID:
		_, s.Parent, isValid = parseID(d.table.Bytes(text))
	case spanID:
		_, s.ID, isValid = parseID(d.table.Bytes(text))
	case spanKind:
		if f.Value < uint64(len(kinds)) {
			s.Kind = kinds[f.Value]
		}
	case spanName:
		s.Name = text
	case spanTimestamp:
		s.Start = nanoseconds(f.Value)
	case spanDuration:
		d.hasDuration = true
		s.Duration = nanoseconds(f.Value)
	case spanLocalEndpoint:
		d.service, _, isValid = d.firstTwoTexts(f)
	case spanRemoteEndpoint:
		d.peer, _, isValid = d.firstTwoTexts(f)
	case spanTags:
		name, value, ok := d.firstTwoTexts(f)
		d.applyTag(d.table.Bytes(name), value)
		isValid = ok
	case spanShared:
		d.isShared = f.Value != 0
	}
	return isValid
}

// firstTwoTexts returns the strings in the fields 1 and 2 of a message, such as the key and the value
// of a tag. A missing string is empty. isValid is false if the message is invalid.
func (d *Decoder) firstTwoTexts(message otlp.Field) (first, second spantable.Text, isValid bool) {
	const firstField, secondField = 1<<3 | asBytes, 2<<3 | asBytes
	isValid = otlp.EachField(d.Body[:message.End], message.Start, func(f otlp.Field) bool {
		switch f.Tag {
		case firstField:
			first = f.Text()
		case secondField:
			second = f.Text()
		}
		return true
	})
	return first, second, isValid
}

// parseID parses an ID of up to 16 bytes in big-endian order, and returns its upper and lower 64 bits.
// ok is false if the ID is longer.
func parseID(id []byte) (high, low uint64, ok bool) {
	var padded [16]byte // id after leading zeros
	if len(id) > len(padded) {
		return 0, 0, false
	}
	copy(padded[len(padded)-len(id):], id)
	high = binary.BigEndian.Uint64(padded[:8])
	low = binary.BigEndian.Uint64(padded[8:])
	return high, low, true
}
