package datadog

import (
	"math"

	"github.com/spanstatsd/spanstatsd/internal/msgpack"
	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

// isStated stands for the kinds of values that each states itself, as in v1.0.
const isStated = spantable.IsNothing

// commonKind reads the type of a v1 value that states it, if it is a text or a float64.
func commonKind(b []byte, at int) (as spantable.Value, next int) {
	switch {
	case at > len(b)-2:
		return isStated, 0
	case b[at] == 1:
		return spantable.IsText, at + 1
	case b[at] == 3 && b[at+1] == msgpack.Float64:
		return spantable.IsNumber, at + 1
	}
	return isStated, 0
}

// attribute reads a type and a value of it, as v1.0 has them.
func (d *values) attribute(depth int) (t spantable.Tag) {
	if depth > msgpack.MaxDepth {
		d.Fail()
		return t
	}
	switch d.Uint(math.MaxUint32) {
	case 1:
		t.Value, t.Bits = spantable.IsText, spantable.TextBits(d.anyText())
	case 2:
		if t.Value = spantable.IsBool; d.Bool() {
			t.Bits = 1
		}
	case 3:
		t.Value, t.Bits = spantable.IsNumber, math.Float64bits(d.Float())
	case 4:
		t.Value, t.Bits = spantable.IsInteger, uint64(d.Int())
	case 5:
		t.Value, t.Bits = spantable.IsBytes, spantable.TextBits(spantable.Text(d.Bin()))
	case 6:
		t.Value = spantable.IsNested
		for n := d.groups(2); n > 0 && !d.Failed(); n-- {
			d.attribute(depth + 1)
		}
	case 7:
		t.Value = spantable.IsNested
		for n := d.groups(3); n > 0 && !d.Failed(); n-- {
			d.number()
			d.attribute(depth + 2)
		}
	default:
		d.Fail()
	}
	return t
}

// groups reads how many groups of so many elements follow in an array.
func (d *values) groups(of int) int {
	n := d.Array()
	if n%of != 0 {
		d.Fail()
	}
	return n / of
}

// skipStreamed steps over what we have no name for in v1.0, but numbers the strings in it, as
// whoever wrote it did.
func (d *values) skipStreamed(depth int) {
	elements := 0
	switch lead := d.Lead(); {
	case msgpack.IsStr(lead):
		d.number()
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
		d.skipStreamed(depth - 1)
	}
}
