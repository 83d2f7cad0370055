package otlp

import (
	"encoding/binary"

	"google.golang.org/protobuf/encoding/protowire"
)

// The ways in which a field's value is written.
const (
	asVarint  = uint32(protowire.VarintType)
	asFixed64 = uint32(protowire.Fixed64Type)
	asBytes   = uint32(protowire.BytesType)
	asFixed32 = uint32(protowire.Fixed32Type)

	asGroup  = uint32(protowire.StartGroupType) // of which OTLP has none
	endGroup = uint32(protowire.EndGroupType)
)

// field is a field of a message. Its tag holds its number and how it is written, so that
// what stands under a known number but is written otherwise is another field, as it is to
// every decoder.
type field struct {
	tag   uint32
	value uint64 // of a number
	at    int    // where a text or a message begins; it ends where the next field begins
}

// number is that of a tag.
func number(tag uint32) uint32 { return tag >> 3 }

// readField reads the field that begins at a place of a message, which ends where b does, and
// returns where the next one begins: 0 if it cannot be read. Nearly all fields have a tag of one
// byte, and behind it a number of eight bytes, or a number or a length of one byte.
func readField(b []byte, at int) (f field, next int) {
	if len(b)-at < 2 || b[at] < 1<<3 || b[at] >= 0x80 {
		return readLongField(b, at)
	}
	behind := int(b[at+1])
	switch f.tag = uint32(b[at]); {
	case f.tag&7 == asFixed64 && len(b)-at > 8:
		f.value = binary.LittleEndian.Uint64(b[at+1:])
		return f, at + 9
	case behind >= 0x80:
	case f.tag&7 == asVarint:
		f.value = uint64(behind)
		return f, at + 2
	case f.tag&7 == asBytes && behind <= len(b)-at-2:
		f.at = at + 2
		return f, f.at + behind
	}
	return readLongField(b, at)
}

// readLongField reads a field of any length, or a group.
func readLongField(b []byte, at int) (f field, next int) {
	if f.tag, at = readTag(b, at); at == 0 {
		return f, 0
	}
	switch f.tag & 7 {
	case asVarint:
		f.value, next = readVarint(b, at)
	case asBytes:
		length, from := readVarint(b, at)
		if from == 0 || length > uint64(len(b)-from) {
			return f, 0
		}
		f.at, next = from, from+int(length)
	case asFixed64:
		if len(b)-at >= 8 {
			f.value, next = binary.LittleEndian.Uint64(b[at:]), at+8
		}
	case asFixed32:
		if len(b)-at >= 4 {
			f.value, next = uint64(binary.LittleEndian.Uint32(b[at:])), at+4
		}
	case asGroup:
		next = readGroup(b, at, number(f.tag))
	}
	return f, next
}

func readTag(b []byte, at int) (tag uint32, next int) {
	v, next := readVarint(b, at)
	if v>>3 < uint64(protowire.MinValidNumber) || v>>3 > uint64(protowire.MaxValidNumber) {
		return 0, 0
	}
	return uint32(v), next
}

// readGroup steps over a group behind the tag that begins it, with all groups in it, and returns where
// it ends. Of those that are nested deeper than MaxDepth it does not look whose end is whose.
func readGroup(b []byte, at int, of uint32) (next int) {
	open := [MaxDepth]uint32{of}
	for depth := 1; depth > 0; {
		tag, behind := readTag(b, at)
		switch {
		case behind == 0:
			return 0
		case tag&7 == asGroup:
			if depth < MaxDepth {
				open[depth] = number(tag)
			}
			depth++
		case tag&7 == endGroup:
			if depth--; depth < MaxDepth && open[depth] != number(tag) {
				return 0
			}
		default:
			if _, behind = readField(b, at); behind == 0 {
				return 0
			}
		}
		at = behind
	}
	return at
}

// readVarint reads a number and returns where it ends, 0 if it does not.
func readVarint(b []byte, at int) (v uint64, next int) {
	if at < len(b) && b[at] < 0x80 {
		return uint64(b[at]), at + 1
	}
	return readLongVarint(b, at)
}

func readLongVarint(b []byte, at int) (v uint64, next int) {
	v, n := protowire.ConsumeVarint(b[at:])
	if n < 0 {
		return 0, 0
	}
	return v, at + n
}

// MaxDepth is how deep messages are looked at that are nested in an attribute, an event or a link. A
// list in a list takes two. What is deeper says nothing to anybody, and is stepped over as it is.
const MaxDepth = 64

// message is a kind of message of which nothing is read, but which has to be one.
type message uint8

const (
	noMessage message = iota // a text, or what we have no name for
	messageEntity
	messageKeyValue
	messageAnyValue
	messageArray
	messageKeyValues
	messageEvent
	messageLink
	messages
)

// partsRoom is more than the highest number of a field with a message in it.
const partsRoom = 8

// parts are the messages in messages, by the numbers of their fields.
var parts = [messages][partsRoom]message{
	messageKeyValue:  {2: messageAnyValue},
	messageAnyValue:  {5: messageArray, 6: messageKeyValues},
	messageArray:     {1: messageAnyValue},
	messageKeyValues: {1: messageKeyValue},
	messageEvent:     {3: messageKeyValue},
	messageLink:      {4: messageKeyValue},
}

// isMessage says whether what lies from a place to the end of b is written as a message of a
// kind, with all that is in it.
func isMessage(b []byte, at int, m message) bool {
	var around [MaxDepth]struct {
		end int
		of  message
	}
	depth, end := 0, len(b)
	for {
		for at == end {
			if depth == 0 {
				return true
			}
			depth--
			end, m = around[depth].end, around[depth].of
		}
		f, next := readField(b[:end], at)
		if next == 0 {
			return false
		}
		part := noMessage
		if f.tag&7 == asBytes && number(f.tag) < partsRoom {
			part = parts[m][number(f.tag)]
		}
		if part != noMessage && depth < MaxDepth {
			around[depth].end, around[depth].of = end, m
			depth++
			at, end, m = f.at, next, part
			continue
		}
		at = next
	}
}

// The tags of the fields of OTLP's messages that are read, version 1: number and way of writing.
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

	valueText   = 1<<3 | asBytes
	valueBool   = 2<<3 | asVarint
	valueInt    = 3<<3 | asVarint
	valueDouble = 4<<3 | asFixed64
	valueArray  = 5<<3 | asBytes
	valueList   = 6<<3 | asBytes
	valueBytes  = 7<<3 | asBytes
	valueIndex  = 8<<3 | asVarint // of a text, in the signal of profiles
)
