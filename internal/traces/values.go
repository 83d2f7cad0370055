package traces

import (
	"math"

	"github.com/spanstatsd/spanstatsd/internal/msgpack"
)

// The functions with a place read the value that begins there and return where it ends.
// Each tries the most common form of the body's format first, without the payload's reader,
// so that the place stays in a register. Every other form is the reader's.

// isByName reports whether the format writes strings where they are used.
func (p *payload) isByName() bool { return p.format == FormatV04 || p.isV07() }

func (p *payload) isV07() bool { return p.format == FormatV07 || p.format == FormatIngest }

// text reads a string of a span.
func (p *payload) text(at int) (t msgpack.Text, next int) {
	if p.isByName() {
		if t, next = msgpack.CommonStr(p.body, at); next != 0 {
			return t, next
		}
	} else if n, next := msgpack.CommonUint(p.body, at); next != 0 && n < uint64(len(p.strings)) {
		return p.strings[n], next
	}
	p.Seek(at)
	return p.anyText(), p.At()
}

func (p *payload) anyText() msgpack.Text {
	switch p.format {
	case FormatV05:
		return p.indexedText()
	case FormatV1:
		return p.streamedText()
	}
	return p.looseText()
}

// anyLabel reads the name of a tag.
func (p *payload) anyLabel() label {
	switch p.format {
	case FormatV05:
		return p.indexedLabel()
	case FormatV1:
		return p.streamedLabel()
	}
	return p.labels.find(p.looseText().Of(p.body))
}

// id reads an identifier, which some languages write as a signed number.
func (p *payload) id(at int) (v uint64, next int) {
	if v, next = msgpack.CommonInt(p.body, at); next != 0 {
		return v, next
	}
	p.Seek(at)
	if p.format == FormatV1 {
		v = p.unsigned()
	} else if !p.IsNil() {
		v, _ = p.Integer()
	}
	return v, p.At()
}

// time reads a start or a duration.
func (p *payload) time(at int) (v uint64, next int) {
	if v, next = msgpack.CommonInt(p.body, at); next != 0 && v <= math.MaxInt64 {
		return v, next
	}
	p.Seek(at)
	if p.format == FormatV1 {
		v = p.unsigned()
	} else {
		v = uint64(p.signed())
	}
	return v, p.At()
}

// isError reads the error of a span, which is no more than 32 bits. What a negative one
// means depends on the format, and no tracer writes it.
func (p *payload) isError(at int) (is bool, next int) {
	if v, next := msgpack.CommonInt(p.body, at); next != 0 && v <= math.MaxInt32 && p.format != FormatV1 {
		return v != 0, next
	}
	p.Seek(at)
	if p.format == FormatV1 {
		is = p.Bool()
	} else {
		v := p.signed()
		if is = v != 0; v < 0 || v > math.MaxInt32 {
			p.Fail()
		}
	}
	return is, p.At()
}

// numberBits reads an integer or a float64 as the bits of a float64, or nothing.
func (p *payload) numberBits() uint64 {
	switch {
	case p.Lead() == msgpack.Float64:
		return math.Float64bits(p.Float())
	case p.IsNil():
		return 0
	}
	v, isNegative := p.Integer()
	if isNegative {
		return math.Float64bits(float64(int64(v)))
	}
	return math.Float64bits(float64(v))
}

// looseText reads what the older formats take for a string: one, bytes, or nothing.
func (p *payload) looseText() msgpack.Text {
	switch lead := p.Lead(); {
	case msgpack.IsStr(lead):
		return p.Str()
	case p.IsNil():
		return msgpack.Text{}
	}
	return p.Bin()
}

// unsigned reads a number that is not negative, number that of a field or a kind.
func (p *payload) unsigned() uint64 { return p.Uint(math.MaxUint64) }

func (p *payload) number() uint64 { return p.Uint(math.MaxUint32) }

// signed reads a number that fits int64, or nothing.
func (p *payload) signed() int64 {
	if p.IsNil() {
		return 0
	}
	return p.Int()
}

// priority reads what is no more than 32 bits.
func (p *payload) priority() int32 {
	v := p.signed()
	if v < math.MinInt32 || v > math.MaxInt32 {
		p.Fail()
	}
	return int32(v)
}

// skipValue steps over a field that we have no use for.
func (p *payload) skipValue() {
	if p.format == FormatV1 {
		p.skipStreamed()
		return
	}
	p.Skip()
}
