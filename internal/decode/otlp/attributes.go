package otlp

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// attributesAhead is for how many attributes of a span there is room before they are read.
const attributesAhead = 64

// shortest is the fewest bytes of an attribute that commonAttributes reads: tag and length, and
// tag and length of its name, of its value, and of what that is.
const shortest = 8

func textAt(at, end int) spantable.Text { return spantable.Text{At: uint32(at), Len: uint32(end - at)} }

// commonAttributes reads attributes of the form that nearly all have, up to the first of another
// form, and returns where that begins: a name before a value, both of less than 128 bytes with
// all that is around them, and the value a text, a number or a yes or no. Which of them have a
// label is nothing that a processor can foretell: so all are noted, and then kept or not.
func (r *Request) commonAttributes(b []byte, at int, lead byte, names *spantable.Names) (next int) {
	tags, kept := r.Tags[:cap(r.Tags)], len(r.Tags)
	for kept < len(tags) && len(b)-at >= shortest && b[at] == lead {
		size := int(b[at+1])
		if size >= 0x80 || size > len(b)-at-2 || size < shortest-2 {
			break
		}
		pair := b[at+2 : at+2+size]
		length := int(pair[1])
		if pair[0] != byte(keyValueKey) || length > len(pair)-6 {
			break
		}
		name, written := pair[2:2+length], pair[2+length:]
		if written[0] != byte(keyValueValue) || int(written[1]) != len(written)-2 {
			break
		}
		t, ok := commonValue(written[2:], at+2+len(pair))
		if !ok {
			break
		}
		isSure := false
		if at+4+8 <= len(b) && at+4+length >= 8 {
			t.Label, isSure = names.FindFingerprint(spantable.FingerprintAt(b, at+4, length))
		}
		if !isSure {
			t.Label = names.Find(name)
		}
		tags[kept] = t
		kept += t.Label.OneIfUsed()
		at += 2 + size
	}
	r.Tags = tags[:kept]
	return at
}

// commonValue reads a value that has two bytes at least and ends at a place of the body.
func commonValue(b []byte, end int) (t spantable.Tag, ok bool) {
	switch uint32(b[0]) {
	case valueText:
		return textTag(textAt(end-len(b)+2, end)), int(b[1]) == len(b)-2
	case valueInt:
		v, next := readVarint(b, 1)
		return spantable.Tag{Value: spantable.IsInteger, Bits: v}, next == len(b)
	case valueBool:
		return spantable.Tag{Value: spantable.IsBool, Bits: uint64(b[1])}, len(b) == 2 && b[1] <= 1
	case valueDouble:
		if len(b) == 9 {
			return spantable.Tag{Value: spantable.IsNumber, Bits: binary.LittleEndian.Uint64(b[1:])}, true
		}
	}
	return t, false
}

func textTag(t spantable.Text) spantable.Tag { return TextTag(spantable.Other, t) }

// TextTag is a tag whose value is a text.
func TextTag(l spantable.Label, t spantable.Text) spantable.Tag {
	return spantable.Tag{Label: l, Value: spantable.IsText, Bits: spantable.TextBits(t)}
}

// attribute reads an attribute of any form, from a place to the end of b.
func (r *Request) attribute(b []byte, at int, names *spantable.Names) {
	t, name := spantable.Tag{}, []byte(nil)
	for at < len(b) {
		f, next := readField(b, at)
		isRead := next != 0
		switch {
		case !isRead:
		case f.tag == keyValueKey:
			name = b[f.at:next]
		case f.tag == keyValueValue:
			isRead = readValue(&t, b[:next], f.at)
		}
		if !isRead {
			r.Fail(ErrUnread)
			return
		}
		at = next
	}
	if t.Label = names.Find(name); t.Label == spantable.Other {
		return
	}
	if r.Tags = append(r.Tags, t); len(r.Tags) > r.Limits.Tags {
		r.Fail(spantable.ErrTooMuch)
	}
}

// readValue reads a value, from a place to the end of b. Of several the last one counts. Bytes,
// lists and indices are read by no rule.
func readValue(t *spantable.Tag, b []byte, at int) bool {
	for at < len(b) {
		f, next := readField(b, at)
		if next == 0 {
			return false
		}
		switch f.tag {
		case valueText:
			*t = textTag(textAt(f.at, next))
		case valueInt:
			t.Value, t.Bits = spantable.IsInteger, f.value
		case valueBool:
			t.Value, t.Bits = spantable.IsBool, min(f.value, 1)
		case valueDouble:
			t.Value, t.Bits = spantable.IsNumber, f.value
		case valueBytes, valueIndex:
			t.Value, t.Bits = spantable.IsNested, 0
		case valueArray, valueList:
			t.Value, t.Bits = spantable.IsNested, 0
			if !isMessage(b[:next], f.at, parts[messageAnyValue][number(f.tag)]) {
				return false
			}
		}
		at = next
	}
	return true
}

// noField is the tag of no field.
const noField = 0

// attributesOf reads the attributes of a message, which have one tag, and looks whether what has
// the other tag is written as it must be.
func (r *Request) attributesOf(said spantable.Text, attributes, entities uint32, names *spantable.Names) {
	b := r.Body[:said.At+said.Len]
	for at := int(said.At); at < len(b) && r.Err() == nil; {
		f, next := readField(b, at)
		switch {
		case next == 0:
			r.Fail(ErrUnread)
		case f.tag == attributes:
			r.attribute(b[:next], f.at, names)
		case f.tag == entities && !isMessage(b[:next], f.at, messageEntity):
			r.Fail(ErrUnread)
		}
		at = next
	}
}

// AppendValue appends the value of an attribute as text. A list is none.
func (r *Request) AppendValue(dst []byte, t *spantable.Tag) []byte {
	switch t.Value {
	case spantable.IsText:
		return append(dst, r.Bytes(t.Text())...)
	case spantable.IsInteger:
		return strconv.AppendInt(dst, int64(t.Bits), 10)
	case spantable.IsBool:
		return strconv.AppendBool(dst, t.Bits == 1)
	case spantable.IsNumber:
		return appendNumber(dst, math.Float64frombits(t.Bits))
	}
	return dst
}

// appendNumber appends a number as OpenTelemetry writes one as text, which is as in JSON.
func appendNumber(dst []byte, n float64) []byte {
	if abs := math.Abs(n); abs == 0 || abs >= 1e-6 && abs < 1e21 || math.IsNaN(n) || math.IsInf(n, 0) {
		return strconv.AppendFloat(dst, n, 'f', -1, 64)
	}
	dst = strconv.AppendFloat(dst, n, 'e', -1, 64)
	if end := len(dst); string(dst[end-4:end-1]) == "e-0" {
		dst = append(dst[:end-2], dst[end-1]) // the exponent has no zero before it
	}
	return dst
}
