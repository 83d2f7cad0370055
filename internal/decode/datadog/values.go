package datadog

import (
	"math"

	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
	"github.com/spanstatsd/spanstatsd/internal/wire/msgpack"
)

// The functions with a parameter pos read the value that starts there, and return the position of the
// next value. They first try the most common encoding of that value, without msgpack.Reader, so that
// the caller's loop can keep pos in a register.

// readText reads the string at pos and returns it with the position after it. In v0.5, the payload
// contains the index of the string in the string table instead. In v1, it can contain either, usually the index.
func (d *Decoder) readText(pos int) (t spantable.Text, next int) {
	if d.format.hasInlineStrings() {
		text, end := msgpack.CommonStr(d.body, pos)
		isCommon := end != 0
		if isCommon {
			return spantable.Text(text), end
		}
	} else {
		index, end := msgpack.CommonUint(d.body, pos)
		isCommon := end != 0
		if isCommon && index < uint64(len(d.strings.texts)) {
			return d.strings.texts[index], end
		}
	}
	// Not the most common encoding of the format: for example a string in v1, or an invalid value.
	d.Seek(pos)
	t = d.readAnyText()
	return t, d.Pos()
}

// readAnyText reads the string at the current position. In v0.5 and v1, this can be an index into the
// string table. If the index is invalid, readAnyText stops the decoder and returns an empty text.
func (d *Decoder) readAnyText() spantable.Text {
	if d.format.hasInlineStrings() {
		return d.readInlineText()
	}
	index := d.readStringIndex()
	if d.Failed() {
		return spantable.Text{}
	}
	return d.strings.texts[index]
}

// readLabel reads the name of a tag, or the index of the name, and returns the label of the tag.
func (d *Decoder) readLabel() spantable.Label {
	if d.format.hasInlineStrings() {
		return d.names.Find(bytesOf(d.body, d.readInlineText()))
	}
	index := d.readStringIndex()
	if d.Failed() {
		return spantable.Other
	}
	return d.strings.labels[index]
}

// readInlineText reads a string. Like the agent, it also accepts binary data, and nil as an empty string.
func (d *Decoder) readInlineText() spantable.Text {
	if msgpack.IsStr(d.Peek()) {
		return spantable.Text(d.Str())
	}
	isNil := d.SkipNil()
	if isNil {
		return spantable.Text{}
	}
	return spantable.Text(d.Bin())
}

// readID reads the trace ID or span ID at pos, and returns it with the position after it. In formats
// before v1, it also accepts a negative integer, which it converts to two's complement, and nil, which
// stands for 0.
func (d *Decoder) readID(pos int) (id uint64, next int) {
	id, next = msgpack.CommonInt(d.body, pos)
	isCommon := next != 0
	if isCommon {
		return id, next
	}
	d.Seek(pos)
	if d.format == FormatV1 {
		id = d.readUint64()
		return id, d.Pos()
	}
	isNil := d.SkipNil()
	if !isNil {
		id, _ = d.Integer()
	}
	return id, d.Pos()
}

// readNanoseconds reads the start time or the duration at pos, and returns it and the position after it.
func (d *Decoder) readNanoseconds(pos int) (ns uint64, next int) {
	ns, next = msgpack.CommonInt(d.body, pos)
	isCommon := next != 0 && ns <= math.MaxInt64
	if isCommon {
		return ns, next
	}
	d.Seek(pos)
	if d.format == FormatV1 {
		ns = d.readUint64()
	} else {
		ns = uint64(d.readInt64())
	}
	return ns, d.Pos()
}

// readStatus reads the error field of a span at pos: a boolean in v1, and an integer in older formats.
// The status is StatusError if the field is true or not 0. readStatus also returns the position after
// the field.
func (d *Decoder) readStatus(pos int) (s spantable.Status, next int) {
	isError := false
	if d.format == FormatV1 {
		d.Seek(pos)
		isError = d.Bool()
		next = d.Pos()
	} else {
		isError, next = d.readErrorCode(pos)
	}
	if isError {
		s = spantable.StatusError
	}
	return s, next
}

// readErrorCode reads the integer at pos, the error field of a span. It reports whether the integer is not 0,
// and returns the position after it. It rejects an integer that is negative or larger than math.MaxInt32.
func (d *Decoder) readErrorCode(pos int) (isError bool, next int) {
	code, next := msgpack.CommonInt(d.body, pos) // fast, but returns 0 for the position if the encoding is rare
	isCommon := next != 0
	if !isCommon {
		d.Seek(pos)
		code = uint64(d.readInt64())
		next = d.Pos()
	}
	isInvalid := code > math.MaxInt32 // includes negative integers in two's complement
	if isInvalid {
		d.Fail()
	}
	return code != 0, next
}

// readFloatBits reads a float64, an integer, or nil, which stands for 0. It converts the value to a
// float64 and returns its bits, as math.Float64bits does.
func (d *Decoder) readFloatBits() uint64 {
	switch d.Peek() {
	case msgpack.Float64:
		return math.Float64bits(d.Float())
	case msgpack.Nil:
		d.SkipNil()
		return 0
	}
	n, isNegative := d.Integer() // two's complement if negative
	if isNegative {
		return math.Float64bits(float64(int64(n)))
	}
	return math.Float64bits(float64(n))
}

func (d *Decoder) readUint64() uint64 { return d.Uint(math.MaxUint64) }

func (d *Decoder) readUint32() uint64 { return d.Uint(math.MaxUint32) }

// readInt64 reads a signed integer. It reads nil as 0.
func (d *Decoder) readInt64() int64 {
	if d.SkipNil() {
		return 0
	}
	return d.Int()
}

// readPriority reads a sampling priority. It rejects a number that is not a 32-bit integer.
func (d *Decoder) readPriority() int32 {
	priority := d.readInt64()
	if priority < math.MinInt32 || priority > math.MaxInt32 {
		d.Fail()
	}
	return int32(priority)
}

// Types of v1 attributes.
const (
	v1String = iota + 1
	v1Bool
	v1Float
	v1Int
	v1Bytes
	v1List
	v1Map
)

// v1AttributeParts is the number of values that encode an attribute: its name, its type, and its value.
const v1AttributeParts = 3

// typedValue stands for the type of v1 attributes, whose values begin with their own type.
const typedValue = spantable.TypeNothing

// readCommonType is a fast path that reads the type of the v1 attribute at body[pos]. If the type is
// string or float64, it returns the type and the position of the value. Otherwise, next is 0.
func readCommonType(body []byte, pos int) (kind spantable.ValueType, next int) {
	valuePos := pos + 1 // the type has one byte
	if valuePos >= len(body) {
		return spantable.TypeNothing, 0
	}
	encodedType, firstByte := body[pos], body[valuePos]
	switch {
	case encodedType == v1String:
		return spantable.TypeText, valuePos
	case encodedType == v1Float && firstByte == msgpack.Float64:
		return spantable.TypeNumber, valuePos
	}
	return spantable.TypeNothing, 0
}

// readTypedValue reads the type and the value of a v1 attribute, and returns them as a tag without a
// label. It does not store the elements of a list or a map. depth is the number of lists and maps that
// contain the value.
func (d *Decoder) readTypedValue(depth int) (t spantable.Tag) {
	if depth > msgpack.MaxDepth {
		d.Fail()
		return t
	}
	switch d.readUint32() {
	case v1String:
		t.Type, t.Bits = spantable.TypeText, spantable.TextBits(d.readAnyText())
	case v1Bool:
		t.Type = spantable.TypeBool
		if d.Bool() {
			t.Bits = 1
		}
	case v1Float:
		t.Type, t.Bits = spantable.TypeNumber, math.Float64bits(d.Float())
	case v1Int:
		t.Type, t.Bits = spantable.TypeInteger, uint64(d.Int())
	case v1Bytes:
		t.Type, t.Bits = spantable.TypeBytes, spantable.TextBits(spantable.Text(d.Bin()))
	case v1List:
		t.Type = spantable.TypeNested
		for n := d.readTupleCount(2); n > 0 && !d.Failed(); n-- {
			d.readTypedValue(depth + 1)
		}
	case v1Map:
		t.Type = spantable.TypeNested
		for n := d.readTupleCount(v1AttributeParts); n > 0 && !d.Failed(); n-- {
			d.readStringIndex()
			d.readTypedValue(depth + 2)
		}
	default:
		d.Fail()
	}
	return t
}

// readTupleCount reads the header of an array in which tupleLen consecutive elements form a tuple, and
// returns the number of tuples. It rejects the payload if the array ends within a tuple.
func (d *Decoder) readTupleCount(tupleLen int) int {
	elements := d.Array()
	isComplete := elements%tupleLen == 0
	if !isComplete {
		d.Fail()
	}
	return elements / tupleLen
}

// skipV1Value skips a value of any type in a v1 payload. It still adds the strings in the value to the
// string table, because later values can refer to them by index. It rejects the payload if arrays and
// maps in it are nested more than maxDepth levels deep.
func (d *Decoder) skipV1Value(maxDepth int) {
	firstByte := d.Peek()
	elements := 0
	switch {
	case msgpack.IsStr(firstByte):
		d.readStringIndex() // adds the string to the table
	case msgpack.IsArray(firstByte):
		elements = d.Array()
	case msgpack.IsMap(firstByte):
		elements = 2 * d.Map() // keys and values
	default:
		d.Skip()
	}
	isTooDeep := elements > 0 && maxDepth == 0
	if isTooDeep {
		d.Fail()
	}
	for ; elements > 0 && !d.Failed(); elements-- {
		d.skipV1Value(maxDepth - 1)
	}
}
