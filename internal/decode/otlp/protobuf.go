package otlp

import (
	"encoding/binary"

	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
	"google.golang.org/protobuf/encoding/protowire"
)

// Wire types of protobuf.
const (
	asVarint  = uint32(protowire.VarintType)
	asFixed64 = uint32(protowire.Fixed64Type)
	asBytes   = uint32(protowire.BytesType)
	asFixed32 = uint32(protowire.Fixed32Type)

	asGroup  = uint32(protowire.StartGroupType) // not used by OTLP
	endGroup = uint32(protowire.EndGroupType)
)

// field is a decoded field of a message. Its tag consists of the field number and the wire type, so a
// field with an unexpected wire type is treated as unknown, as in every protobuf decoder.
type field struct {
	tag   uint32
	value uint64 // value of a numeric field
	start int    // start of a text or a message, which ends at the next field
}

// fieldNumberOf returns the field number in a tag.
func fieldNumberOf(tag uint32) uint32 { return tag >> 3 }

// wireTypeOf returns the wire type in a tag.
func wireTypeOf(tag uint32) uint32 { return tag & 7 }

// readField reads the field at b[pos:] of a protobuf message that ends at the end of b. It returns the
// field and the position of the next one, or 0 as the position if the field is invalid. It has a fast path
// for the most common fields, whose tag and length have one byte each.
func readField(b []byte, pos int) (f field, next int) {
	if len(b)-pos < 2 {
		return readAnyField(b, pos)
	}
	const minTag, maxTag = 1 << 3, 1<<7 - 1 // tags of one byte: field numbers 1 to 15
	if b[pos] < minTag || b[pos] > maxTag {
		return readAnyField(b, pos)
	}
	f.tag = uint32(b[pos])
	valueAt := pos + 1
	valueOrLength := int(b[valueAt])
	isOneByte := valueOrLength < 0x80 // no further bytes belong to the value or length
	switch wireTypeOf(f.tag) {
	case asFixed64:
		if end := valueAt + 8; end <= len(b) {
			f.value = binary.LittleEndian.Uint64(b[valueAt:])
			return f, end
		}
	case asVarint:
		if isOneByte {
			f.value = uint64(valueOrLength)
			return f, valueAt + 1
		}
	case asBytes:
		start := valueAt + 1
		end := start + valueOrLength
		if isOneByte && end <= len(b) {
			f.start = start
			return f, end
		}
	}
	return readAnyField(b, pos)
}

// readAnyField reads the protobuf field at b[pos:] in any encoding. It returns the field and the
// position of the next one, or 0 as the position if the field is invalid. A group, an old encoding of a
// nested message, counts as one field, whose content is skipped.
func readAnyField(b []byte, pos int) (f field, next int) {
	f.tag, pos = readTag(b, pos)
	if pos == 0 {
		return f, 0
	}
	unread := b[pos:]
	switch wireTypeOf(f.tag) {
	case asVarint:
		f.value, next = readVarint(b, pos)
		return f, next
	case asBytes:
		length, start := readVarint(b, pos)
		isComplete := start != 0 && length <= uint64(len(b)-start)
		if isComplete {
			f.start = start
			return f, start + int(length)
		}
	case asFixed64:
		if len(unread) >= 8 {
			f.value = binary.LittleEndian.Uint64(unread)
			return f, pos + 8
		}
	case asFixed32:
		if len(unread) >= 4 {
			f.value = uint64(binary.LittleEndian.Uint32(unread))
			return f, pos + 4
		}
	case asGroup:
		return f, skipGroup(b, pos, fieldNumberOf(f.tag))
	}
	return f, 0
}

func readTag(b []byte, pos int) (tag uint32, next int) {
	v, next := readVarint(b, pos)
	if v>>3 < uint64(protowire.MinValidNumber) || v>>3 > uint64(protowire.MaxValidNumber) {
		return 0, 0
	}
	return uint32(v), next
}

// skipGroup skips a protobuf group, an old encoding of a nested message. pos is the position after its
// start tag. skipGroup returns the position after its end tag, or 0 if the group is invalid. The start tag and the
// end tag of a group must have the same field number. skipGroup does not check this for groups that are nested more
// than MaxDepth levels deep.
func skipGroup(b []byte, pos int, fieldNumber uint32) (end int) {
	openNumbers := [MaxDepth]uint32{fieldNumber} // field numbers of the open groups, the outermost first
	depth := 1                                   // number of open groups
	for depth > 0 {
		tag, next := readTag(b, pos)
		if next == 0 {
			return 0
		}
		switch wireTypeOf(tag) {
		case asGroup:
			if depth < MaxDepth {
				openNumbers[depth] = fieldNumberOf(tag)
			}
			depth++
		case endGroup:
			depth-- // now the index of the group that ends
			isMismatch := depth < MaxDepth && openNumbers[depth] != fieldNumberOf(tag)
			if isMismatch {
				return 0
			}
		default:
			_, next = readField(b, pos)
			if next == 0 {
				return 0
			}
		}
		pos = next
	}
	return pos
}

// readVarint reads the varint at b[pos:], and returns the position after it, or 0 if it is invalid.
func readVarint(b []byte, pos int) (v uint64, next int) {
	if pos < len(b) && b[pos] < 0x80 {
		return uint64(b[pos]), pos + 1
	}
	return readLongVarint(b, pos)
}

// readLongVarint is separate, so that the compiler can inline readVarint.
func readLongVarint(b []byte, pos int) (v uint64, next int) {
	v, n := protowire.ConsumeVarint(b[pos:])
	if n < 0 {
		return 0, 0
	}
	return v, pos + n
}

// MaxDepth is the maximum nesting of messages in an attribute, an event or a link that is validated. A
// list in a list takes two levels. Deeper messages are skipped without validation.
const MaxDepth = 64

// messageType is a type of message that is validated but not decoded.
type messageType uint8

const (
	noMessage messageType = iota // not a message, or an unknown field
	messageEntity
	messageKeyValue
	messageAnyValue
	messageArray
	messageKeyValues
	messageEvent
	messageLink
	messageCount
)

// submessageFields is the length of each array in submessages. Messages in fields with this number or a higher one
// are not validated.
const submessageFields = 8

// submessages are the types of the fields that contain a message, by message type and field number.
var submessages = [messageCount][submessageFields]messageType{
	messageKeyValue:  {2: messageAnyValue},
	messageAnyValue:  {5: messageArray, 6: messageKeyValues},
	messageArray:     {1: messageAnyValue},
	messageKeyValues: {1: messageKeyValue},
	messageEvent:     {3: messageKeyValue},
	messageLink:      {4: messageKeyValue},
}

// isValidMessage reports whether b[pos:] is a valid protobuf message of type t. It also validates the
// messages in it, down to MaxDepth levels.
func isValidMessage(b []byte, pos int, t messageType) bool {
	return areFieldsValid(b, pos, t, MaxDepth)
}

// areFieldsValid reports whether b[pos:] is a valid protobuf message of type t. It also validates the messages in it,
// down to maxDepth levels, which limits the recursion.
func areFieldsValid(b []byte, pos int, t messageType, maxDepth int) bool {
	for pos < len(b) {
		f, next := readField(b, pos)
		if next == 0 {
			return false
		}
		submessage := t.submessage(f.tag)
		mustValidate := submessage != noMessage && maxDepth > 0
		if mustValidate && !areFieldsValid(b[:next], f.start, submessage, maxDepth-1) {
			return false
		}
		pos = next
	}
	return true
}

// submessage returns the type of the message in the field of t with the given tag, or noMessage if the field
// contains no message.
func (t messageType) submessage(tag uint32) messageType {
	fieldNumber := fieldNumberOf(tag)
	canBeMessage := wireTypeOf(tag) == asBytes && fieldNumber < submessageFields
	if !canBeMessage {
		return noMessage
	}
	return submessages[t][fieldNumber]
}

// Field is a field of a message, for decoders of other protobuf formats.
type Field struct {
	Tag        uint32 // field number and wire type
	Value      uint64 // value of a numeric field
	Start, End int    // range of a text or a message
}

// Text returns the range of a text or a message.
func (f Field) Text() spantable.Text { return textBetween(f.Start, f.End) }

// EachField calls visit for each field of the protobuf message in b[pos:]. It stops and returns false if
// visit returns false or if a field is invalid. visit may already have been called for fields before an
// invalid one.
func EachField(b []byte, pos int, visit func(Field) bool) bool {
	for pos < len(b) {
		f, next := readField(b, pos)
		isValid := next != 0
		if !isValid {
			return false
		}
		if !visit(Field{Tag: f.tag, Value: f.value, Start: f.start, End: next}) {
			return false
		}
		pos = next
	}
	return true
}

// Tags of the OTLP fields that are read: field number and wire type.
const (
	requestResourceSpans = 1<<3 | asBytes

	resourceSpansResource = 1<<3 | asBytes
	resourceSpansScopes   = 2<<3 | asBytes

	resourceAttributes = 1<<3 | asBytes
	resourceEntities   = 3<<3 | asBytes

	scopeSpansScope = 1<<3 | asBytes
	scopeSpansSpans = 2<<3 | asBytes

	scopeAttributes = 3<<3 | asBytes

	spanTraceID    = 1<<3 | asBytes
	spanID         = 2<<3 | asBytes
	spanTraceState = 3<<3 | asBytes
	spanParentID   = 4<<3 | asBytes
	spanName       = 5<<3 | asBytes
	spanKind       = 6<<3 | asVarint
	spanStart      = 7<<3 | asFixed64
	spanEnd        = 8<<3 | asFixed64
	spanAttributes = 9<<3 | asBytes
	spanEvents     = 11<<3 | asBytes
	spanLinks      = 13<<3 | asBytes
	spanStatus     = 15<<3 | asBytes

	statusCode = 3<<3 | asVarint

	keyValueKey   = 1<<3 | asBytes
	keyValueValue = 2<<3 | asBytes

	valueText      = 1<<3 | asBytes
	valueBool      = 2<<3 | asVarint
	valueInt       = 3<<3 | asVarint
	valueDouble    = 4<<3 | asFixed64
	valueArray     = 5<<3 | asBytes
	valueKeyValues = 6<<3 | asBytes
	valueBytes     = 7<<3 | asBytes
	valueIndex     = 8<<3 | asVarint // index in a string table, which only the profiles signal uses
)
