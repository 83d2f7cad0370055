package datadog

import (
	"math"

	"github.com/spanstatsd/spanstatsd/internal/msgpack"
	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

// values reads the values of a body, each as its format writes it.
type values struct {
	msgpack.Reader
	body    []byte
	format  Format
	table   *spantable.Table
	names   *spantable.Names // of the tags that are kept
	strings strings          // of the formats that number them
}

// check ends the reading of a body that exceeds its limits.
func (d *values) check() {
	if d.table.Err() != nil {
		d.Fail()
	}
}

// addString gives a string the next number, if there may be one more.
func (d *values) addString(t spantable.Text, l spantable.Label) {
	s := &d.strings
	if len(s.texts) >= d.table.Limits.Strings {
		d.table.Fail(spantable.ErrTooMuch)
		d.Fail()
		return
	}
	s.texts, s.labels = append(s.texts, t), append(s.labels, l)
}

// numberOf is the number of a string, a new one where the body has not had it. It reports
// whether it is new.
func (d *values) numberOf(t spantable.Text) (number int, isNew bool) {
	s, text := &d.strings, bytesOf(d.body, t)
	if 2*(len(s.texts)+1) > len(s.slots) {
		s.grow(d.body)
	}
	slot := s.slot(d.body, text)
	if *slot != 0 {
		return int(*slot - 1), false
	}
	number = len(s.texts)
	if d.addString(t, d.names.Find(text)); !d.Failed() {
		*slot = uint32(number + 1)
	}
	return number, true
}

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
	if d.format.isByName() {
		return d.looseText()
	}
	if n := d.number(); !d.Failed() {
		return d.strings.texts[n]
	}
	return spantable.Text{}
}

// anyLabel reads the name of a tag.
func (d *values) anyLabel() spantable.Label {
	if d.format.isByName() {
		return d.names.Find(bytesOf(d.body, d.looseText()))
	}
	if n := d.number(); !d.Failed() {
		return d.strings.labels[n]
	}
	return spantable.Other
}

// number reads the number of a string, or in v1.0 a string that the body may not have had.
func (d *values) number() (number int) {
	if d.format == FormatV1 && msgpack.IsStr(d.Lead()) {
		if text := d.Str(); !d.Failed() {
			number, _ = d.numberOf(spantable.Text(text))
		}
		return number
	}
	n := d.Uint(math.MaxUint64)
	if n >= uint64(len(d.strings.texts)) {
		d.Fail()
		return 0
	}
	return int(n)
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
