package datadog

import (
	"math"

	"github.com/spanstatsd/spanstatsd/internal/msgpack"
	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

// The functions with a place read the value that begins there and return where it ends. Each
// tries the most common form of the body's format first, without the general reader, so that the
// place stays in a register. Every other form is the general reader's.

// text reads a string of a span.
func (d *values) text(at int) (t spantable.Text, next int) {
	if d.format.isByName() {
		if t, next := msgpack.CommonStr(d.body, at); next != 0 {
			return spantable.Text(t), next
		}
	} else if n, next := msgpack.CommonUint(d.body, at); next != 0 && n < uint64(len(d.strings.texts)) {
		return d.strings.texts[n], next
	}
	d.Seek(at)
	return d.anyText(), d.At()
}

// anyText reads a string of any form.
func (d *values) anyText() spantable.Text {
	n := 0
	switch d.format {
	case FormatV05:
		n = d.index()
	case FormatV1:
		n = d.streamed()
	default:
		return d.looseText()
	}
	if d.Failed() {
		return spantable.Text{}
	}
	return d.strings.texts[n]
}

// anyLabel reads the name of a tag.
func (d *values) anyLabel() spantable.Label {
	n := 0
	switch d.format {
	case FormatV05:
		n = d.index()
	case FormatV1:
		n = d.streamed()
	default:
		return d.names.Find(bytesOf(d.body, d.looseText()))
	}
	if d.Failed() {
		return spantable.Other
	}
	return d.strings.labels[n]
}

// looseText reads what the older formats take for a string: one, bytes, or nothing.
func (d *values) looseText() spantable.Text {
	switch lead := d.Lead(); {
	case msgpack.IsStr(lead):
		return spantable.Text(d.Str())
	case d.IsNil():
		return spantable.Text{}
	}
	return spantable.Text(d.Bin())
}

// id reads an identifier, which some languages write as a signed number.
func (d *values) id(at int) (v uint64, next int) {
	if v, next = msgpack.CommonInt(d.body, at); next != 0 {
		return v, next
	}
	d.Seek(at)
	if d.format == FormatV1 {
		v = d.unsigned()
	} else if !d.IsNil() {
		v, _ = d.Integer()
	}
	return v, d.At()
}

// time reads a start or a duration.
func (d *values) time(at int) (v uint64, next int) {
	if v, next = msgpack.CommonInt(d.body, at); next != 0 && v <= math.MaxInt64 {
		return v, next
	}
	d.Seek(at)
	if d.format == FormatV1 {
		v = d.unsigned()
	} else {
		v = uint64(d.signed())
	}
	return v, d.At()
}

// status reads the error of a span, which is no more than 32 bits. What a negative one means
// depends on the format, and no tracer writes it.
func (d *values) status(at int) (s spantable.Status, next int) {
	v, next := msgpack.CommonInt(d.body, at)
	if next == 0 || v > math.MaxInt32 || d.format == FormatV1 {
		d.Seek(at)
		if d.format != FormatV1 {
			v = uint64(d.signed())
		} else if v = 0; d.Bool() {
			v = 1
		}
		next = d.At()
	}
	if v > math.MaxInt32 {
		d.Fail()
	}
	if v != 0 {
		return spantable.StatusError, next
	}
	return spantable.StatusUnset, next
}

// numberBits reads an integer or a float64 as the bits of a float64, or nothing.
func (d *values) numberBits() uint64 {
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

// unsigned reads a number that is not negative.
func (d *values) unsigned() uint64 { return d.Uint(math.MaxUint64) }

// signed reads a number that fits int64, or nothing.
func (d *values) signed() int64 {
	if d.IsNil() {
		return 0
	}
	return d.Int()
}

// priority reads what is no more than 32 bits.
func (d *values) priority() int32 {
	v := d.signed()
	if v < math.MinInt32 || v > math.MaxInt32 {
		d.Fail()
	}
	return int32(v)
}
