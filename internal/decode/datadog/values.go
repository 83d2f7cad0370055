package datadog

import (
	"math"

	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
	"github.com/spanstatsd/spanstatsd/internal/wire/msgpack"
)

// The functions with a parameter pos read the value that starts there, and return the position of the
// next value. They first try the most common encoding of that value, without msgpack.Reader, so that
// the caller's loop can keep pos in a register.

// readText reads a string of a span.
func (d *Decoder) readText(pos int) (t spantable.Text, next int) {
	if d.format.hasInlineStrings() {
		if t, next := msgpack.CommonStr(d.body, pos); next != 0 {
			return spantable.Text(t), next
		}
	} else if i, next := msgpack.CommonUint(d.body, pos); next != 0 && i < uint64(len(d.strings.texts)) {
		return d.strings.texts[i], next
	}
	d.Seek(pos)
	return d.readAnyText(), d.At()
}

// readAnyText reads a string in any encoding, inline or by index.
func (d *Decoder) readAnyText() spantable.Text {
	if d.format.hasInlineStrings() {
		return d.readInlineText()
	}
	if i := d.readStringIndex(); !d.Failed() {
		return d.strings.texts[i]
	}
	return spantable.Text{}
}

// readLabel reads the name of a tag, inline or by index, and returns its label.
func (d *Decoder) readLabel() spantable.Label {
	if d.format.hasInlineStrings() {
		return d.names.Find(bytesOf(d.body, d.readInlineText()))
	}
	if i := d.readStringIndex(); !d.Failed() {
		return d.strings.labels[i]
	}
	return spantable.Other
}

// readInlineText reads a string. Like the agent, it also accepts binary, and nil as an empty string.
func (d *Decoder) readInlineText() spantable.Text {
	switch lead := d.Lead(); {
	case msgpack.IsStr(lead):
		return spantable.Text(d.Str())
	case d.IsNil():
		return spantable.Text{}
	}
	return spantable.Text(d.Bin())
}

// readID reads a trace or span ID. Before v1, an ID may also be a signed integer or nil.
func (d *Decoder) readID(pos int) (id uint64, next int) {
	if id, next = msgpack.CommonInt(d.body, pos); next != 0 {
		return id, next
	}
	d.Seek(pos)
	if d.format == FormatV1 {
		id = d.readUint64()
	} else if !d.IsNil() {
		id, _ = d.Integer()
	}
	return id, d.At()
}

// readNanoseconds reads a start time or a duration.
func (d *Decoder) readNanoseconds(pos int) (ns uint64, next int) {
	if ns, next = msgpack.CommonInt(d.body, pos); next != 0 && ns <= math.MaxInt64 {
		return ns, next
	}
	d.Seek(pos)
	if d.format == FormatV1 {
		ns = d.readUint64()
	} else {
		ns = uint64(d.readInt64())
	}
	return ns, d.At()
}

// readStatus reads the error field of a span: a boolean in v1, an integer before. It rejects negative
// integers, because their meaning depends on the format and no tracer writes them.
func (d *Decoder) readStatus(pos int) (s spantable.Status, next int) {
	if d.format == FormatV1 {
		d.Seek(pos)
		if d.Bool() {
			s = spantable.StatusError
		}
		return s, d.At()
	}
	code, next := msgpack.CommonInt(d.body, pos)
	if next == 0 || code > math.MaxInt32 {
		d.Seek(pos)
		code, next = uint64(d.readInt64()), d.At()
	}
	if code > math.MaxInt32 { // includes negative integers in two's complement
		d.Fail()
	}
	if code != 0 {
		s = spantable.StatusError
	}
	return s, next
}

// readFloatBits reads a float64 or an integer and returns its value as the bits of a float64. The
// value of nil is 0.
func (d *Decoder) readFloatBits() uint64 {
	switch {
	case d.Lead() == msgpack.Float64:
		return math.Float64bits(d.Float())
	case d.IsNil():
		return 0
	}
	v, isNegative := d.Integer()
	if isNegative {
		return math.Float64bits(float64(int64(v)))
	}
	return math.Float64bits(float64(v))
}

func (d *Decoder) readUint64() uint64 { return d.Uint(math.MaxUint64) }

func (d *Decoder) readUint32() uint64 { return d.Uint(math.MaxUint32) }

// readInt64 reads a signed integer. The value of nil is 0.
func (d *Decoder) readInt64() int64 {
	if d.IsNil() {
		return 0
	}
	return d.Int()
}

// readPriority reads a sampling priority.
func (d *Decoder) readPriority() int32 {
	v := d.readInt64()
	if v < math.MinInt32 || v > math.MaxInt32 {
		d.Fail()
	}
	return int32(v)
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

// typedValue stands for the type of v1 attributes, whose values begin with their own type.
const typedValue = spantable.IsNothing

// readCommonType reads the type of a v1 attribute if it is a string or a float64. Otherwise, next is 0.
func readCommonType(body []byte, pos int) (kind spantable.Value, next int) {
	switch {
	case pos > len(body)-2:
		return typedValue, 0
	case body[pos] == v1String:
		return spantable.IsText, pos + 1
	case body[pos] == v1Float && body[pos+1] == msgpack.Float64:
		return spantable.IsNumber, pos + 1
	}
	return typedValue, 0
}

// readTypedValue reads the type and the value of a v1 attribute. depth is the number of lists and maps
// that contain it.
func (d *Decoder) readTypedValue(depth int) (t spantable.Tag) {
	if depth > msgpack.MaxDepth {
		d.Fail()
		return t
	}
	switch d.readUint32() {
	case v1String:
		t.Value, t.Bits = spantable.IsText, spantable.TextBits(d.readAnyText())
	case v1Bool:
		if t.Value = spantable.IsBool; d.Bool() {
			t.Bits = 1
		}
	case v1Float:
		t.Value, t.Bits = spantable.IsNumber, math.Float64bits(d.Float())
	case v1Int:
		t.Value, t.Bits = spantable.IsInteger, uint64(d.Int())
	case v1Bytes:
		t.Value, t.Bits = spantable.IsBytes, spantable.TextBits(spantable.Text(d.Bin()))
	case v1List:
		t.Value = spantable.IsNested
		for n := d.readArrayOf(2); n > 0 && !d.Failed(); n-- {
			d.readTypedValue(depth + 1)
		}
	case v1Map:
		t.Value = spantable.IsNested
		for n := d.readArrayOf(3); n > 0 && !d.Failed(); n-- {
			d.readStringIndex()
			d.readTypedValue(depth + 2)
		}
	default:
		d.Fail()
	}
	return t
}

// readArrayOf reads the header of an array whose elements form groups of size elements each. It
// returns the number of groups.
func (d *Decoder) readArrayOf(size int) int {
	n := d.Array()
	if n%size != 0 {
		d.Fail()
	}
	return n / size
}

// skipV1Value skips a value of an unknown field in a v1 payload. It must still decode the value,
// because it can contain strings that later values refer to by index. depth limits the nesting.
func (d *Decoder) skipV1Value(depth int) {
	elements := 0
	switch lead := d.Lead(); {
	case msgpack.IsStr(lead):
		d.readStringIndex()
	case msgpack.IsArray(lead):
		elements = d.Array()
	case msgpack.IsMap(lead):
		elements = 2 * d.Map()
	default:
		d.Skip()
	}
	if elements > 0 && depth == 0 {
		d.Fail()
	}
	for ; elements > 0 && !d.Failed(); elements-- {
		d.skipV1Value(depth - 1)
	}
}
