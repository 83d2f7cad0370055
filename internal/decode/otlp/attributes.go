package otlp

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strconv"

	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// reservedAttributes is the number of attributes for which memory is reserved before a span is read.
const reservedAttributes = 64

// minCommonAttribute is the minimum length of an attribute that readCommonAttributes can read: a tag
// and a length each for the attribute, its key, its value, and the content of the value.
const minCommonAttribute = 8

// textBetween returns the text in body[begin:end].
func textBetween(begin, end int) spantable.Text {
	return spantable.Text{Start: uint32(begin), Len: uint32(end - begin)}
}

// readCommonAttributes is a fast path for consecutive attribute fields with the given protobuf tag,
// starting at b[pos]. It stops at the first field that is not in the most common encoding, and returns
// its position. In that encoding, the key precedes the value, the attribute has less than 128 bytes,
// and the value is a string, a number or a boolean.
func (r *Request) readCommonAttributes(b []byte, pos int, tag byte, names *spantable.Names) (next int) {
	tags, stored := r.Tags[:cap(r.Tags)], len(r.Tags)
	for stored < len(tags) && len(b)-pos >= minCommonAttribute && b[pos] == tag {
		size := int(b[pos+1])
		if size >= 0x80 || size > len(b)-pos-2 || size < minCommonAttribute-2 {
			break
		}
		keyValue := b[pos+2 : pos+2+size]
		keyLen := int(keyValue[1])
		if keyValue[0] != byte(keyValueKey) || keyLen > len(keyValue)-6 {
			break
		}
		key, value := keyValue[2:2+keyLen], keyValue[2+keyLen:]
		if value[0] != byte(keyValueValue) || int(value[1]) != len(value)-2 {
			break
		}
		valueEnd, valueLen := pos+2+size, int(value[1])
		t, isCommon := readCommonValue(b[:valueEnd], valueEnd-valueLen)
		if !isCommon {
			break
		}
		isSure := false
		if pos+4+8 <= len(b) && pos+4+keyLen >= 8 {
			t.Label, isSure = names.FindFingerprint(spantable.FingerprintAt(b, pos+4, keyLen))
		}
		if !isSure {
			t.Label = names.Find(key)
		}
		// Store every tag, but increment the count only if the tag has a label. The CPU could not
		// predict a branch on the label.
		tags[stored] = t
		stored += t.Label.OneIfUsed()
		pos += 2 + size
	}
	r.Tags = tags[:stored]
	return pos
}

// readCommonValue is a fast path of readValue for an AnyValue message in b[pos:] that contains one text, number or
// boolean. The message must have at least two bytes. If isCommon is false, t is invalid, and readValue must read the
// message instead.
func readCommonValue(b []byte, pos int) (t spantable.Tag, isCommon bool) {
	const (
		textHeaderLen = 2     // protobuf tag and length, one byte each
		doubleLen     = 1 + 8 // protobuf tag and value
	)
	message := b[pos:]
	switch uint32(message[0]) {
	case valueText:
		text := textBetween(pos+textHeaderLen, len(b))
		encodedLen := uint32(message[1])
		isCommon = encodedLen == text.Len // otherwise, the length has several bytes, or is invalid
		return textTag(text), isCommon
	case valueInt:
		n, next := readVarint(message, 1)
		isCommon = next == len(message)
		return spantable.Tag{Type: spantable.TypeInteger, Bits: n}, isCommon
	case valueBool:
		isCommon = len(message) == 2 && message[1] <= 1
		return spantable.Tag{Type: spantable.TypeBool, Bits: uint64(message[1])}, isCommon
	case valueDouble:
		if len(message) == doubleLen {
			bits := binary.LittleEndian.Uint64(message[1:])
			return spantable.Tag{Type: spantable.TypeNumber, Bits: bits}, true
		}
	}
	return t, false
}

func textTag(t spantable.Text) spantable.Tag { return TextTag(spantable.Other, t) }

// TextTag returns a tag with a label and a text value.
func TextTag(label spantable.Label, t spantable.Text) spantable.Tag {
	return spantable.Tag{Label: label, Type: spantable.TypeText, Bits: spantable.TextBits(t)}
}

// readAttribute reads an attribute, the KeyValue message in b[pos:], and appends it to r.Tags if its
// key is in names. It records an error in r if the message is invalid, or if r has too many tags.
func (r *Request) readAttribute(b []byte, pos int, names *spantable.Names) {
	key, t, isValid := readKeyValue(b, pos)
	if !isValid {
		r.Fail(ErrUnparsable)
		return
	}
	t.Label = names.Find(key)
	if t.Label == spantable.Other {
		return
	}
	r.Tags = append(r.Tags, t)
	if len(r.Tags) > r.Limits.Tags {
		r.Fail(spantable.ErrTooMuch)
	}
}

// readKeyValue reads the KeyValue message in b[pos:], and returns its key, and its value in a tag without a label.
func readKeyValue(b []byte, pos int) (key []byte, value spantable.Tag, isValid bool) {
	for pos < len(b) {
		f, next := readField(b, pos)
		if next == 0 {
			return nil, value, false
		}
		switch f.tag {
		case keyValueKey:
			key = b[f.start:next]
		case keyValueValue:
			value, isValid = readValue(value, b[:next], f.start)
			if !isValid {
				return nil, value, false
			}
		}
		pos = next
	}
	return key, value, true
}

// readValue reads the value of an attribute, the AnyValue message in b[pos:]. It returns the type and the content of
// the value in a tag without a label; bytes, lists and maps have no content. If the message has several values, the
// last one counts. If it has none, readValue returns previous. isValid is false if the message is invalid.
func readValue(previous spantable.Tag, b []byte, pos int) (value spantable.Tag, isValid bool) {
	value = previous
	for pos < len(b) {
		f, next := readField(b, pos)
		if next == 0 {
			return value, false
		}
		isValid = true
		switch f.tag {
		case valueText:
			value = textTag(textBetween(f.start, next))
		case valueInt:
			value = spantable.Tag{Type: spantable.TypeInteger, Bits: f.value}
		case valueBool:
			value = spantable.Tag{Type: spantable.TypeBool, Bits: min(f.value, 1)}
		case valueDouble:
			value = spantable.Tag{Type: spantable.TypeNumber, Bits: f.value}
		case valueBytes, valueIndex: // valueIndex does not occur in traces
			value = spantable.Tag{Type: spantable.TypeNested}
		case valueArray:
			value = spantable.Tag{Type: spantable.TypeNested}
			isValid = isValidMessage(b[:next], f.start, messageArray)
		case valueKeyValues:
			value = spantable.Tag{Type: spantable.TypeNested}
			isValid = isValidMessage(b[:next], f.start, messageKeyValues)
		}
		if !isValid {
			return value, false
		}
		pos = next
	}
	return value, true
}

// noField is a tag that no field has.
const noField = 0

// readAttributes reads a Resource or InstrumentationScope message, and appends those of its attributes that are in
// names to r.Tags. attributeTag is the protobuf tag (field number and wire type) of attributes, and entityTag that of
// entities, which are validated but not stored. readAttributes records an error in r if the message is invalid.
func (r *Request) readAttributes(message spantable.Text, attributeTag, entityTag uint32, names *spantable.Names) {
	end := message.Start + message.Len
	b := r.Body[:end]
	for pos := int(message.Start); pos < len(b) && r.Err() == nil; {
		f, next := readField(b, pos) // the content of the field is b[f.start:next]
		isInvalid := next == 0
		switch {
		case isInvalid:
			r.Fail(ErrUnparsable)
		case f.tag == attributeTag:
			r.readAttribute(b[:next], f.start, names)
		case f.tag == entityTag && !isValidMessage(b[:next], f.start, messageEntity):
			r.Fail(ErrUnparsable)
		}
		pos = next
	}
}

// AppendValue appends the value of an attribute as text. It appends nothing for bytes, lists and maps.
func (r *Request) AppendValue(dst []byte, t *spantable.Tag) []byte {
	switch t.Type {
	case spantable.TypeText:
		return append(dst, r.Bytes(t.Text())...)
	case spantable.TypeInteger:
		return strconv.AppendInt(dst, int64(t.Bits), 10)
	case spantable.TypeBool:
		return strconv.AppendBool(dst, t.Bits == 1)
	case spantable.TypeNumber:
		return appendNumber(dst, math.Float64frombits(t.Bits))
	}
	return dst
}

// appendNumber appends n in the format of JSON numbers, which OpenTelemetry specifies for attributes that
// are converted to text. JSON has no NaN and no infinities; they become NaN, +Inf and -Inf.
func appendNumber(dst []byte, n float64) []byte {
	abs := math.Abs(n)
	isFinite := !math.IsNaN(n) && !math.IsInf(n, 0)
	isVerySmall := abs > 0 && abs < 1e-6
	isVeryLarge := abs >= 1e21
	hasExponent := isFinite && (isVerySmall || isVeryLarge)
	if !hasExponent {
		return strconv.AppendFloat(dst, n, 'f', -1, 64)
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, n, 'e', -1, 64)
	// JSON has e-7 where Go has e-07.
	if padded := bytes.Index(dst[start:], []byte("e-0")); padded >= 0 {
		zero := start + padded + len("e-")
		dst = slices.Delete(dst, zero, zero+1)
	}
	return dst
}
