package traces

import (
	"math"
	"strconv"

	"github.com/spanstatsd/spanstatsd/client/rules"
	"github.com/spanstatsd/spanstatsd/internal/msgpack"
)

// kindOf says what a tag's value was written as.
type kindOf uint8

const (
	isText kindOf = iota
	isNumber
	isInteger
	isBool
	isBytes
	isNested // a list or a map, which no rule can read
	isStated // in v1.0 each value states its kind
)

// tag is a tag that some rule asks for, as one span has it.
type tag struct {
	label label
	kind  kindOf
	bits  uint64 // of isNumber a float64, of isInteger an int64, of isBool 0 or 1, else a text
}

// text is a tag's of isText or isBytes.
func (t *tag) text() msgpack.Text { return textOf(t.bits) }

func (t *tag) isWritten() bool { return t.kind == isText || t.kind == isBytes }

// bitsOf is a text as a tag holds it, textOf the text of such bits.
func bitsOf(t msgpack.Text) uint64 { return uint64(t.Len)<<32 | uint64(t.At) }

func textOf(bits uint64) msgpack.Text {
	return msgpack.Text{At: uint32(bits), Len: uint32(bits >> 32)}
}

// number is the value as the agent reads a number: also from text.
func (t *tag) number(body []byte) (float64, bool) {
	switch t.kind {
	case isNumber:
		return math.Float64frombits(t.bits), true
	case isInteger:
		return float64(int64(t.bits)), true
	case isBool:
		return float64(t.bits), true
	case isText:
		if s := t.text().Of(body); len(s) > 0 && s[0] <= '9' || len(s) > 2 { // "1", "-1", ".5", "inf"
			f, err := strconv.ParseFloat(view(s), 64)
			return f, err == nil
		}
	}
	return 0, false
}

// whole is the value as the agent reads a whole number: not from text.
func (t *tag) whole() (int64, bool) {
	switch t.kind {
	case isInteger:
		return int64(t.bits), true
	case isNumber:
		return rules.WholeNumber(math.Float64frombits(t.bits))
	}
	return 0, false
}

// append appends the value as the agent writes any as text.
func (t *tag) append(dst, body []byte) []byte {
	switch t.kind {
	case isNumber:
		return strconv.AppendFloat(dst, math.Float64frombits(t.bits), 'f', -1, 64)
	case isInteger:
		return strconv.AppendInt(dst, int64(t.bits), 10)
	case isBool:
		return strconv.AppendBool(dst, t.bits == 1)
	default:
		return append(dst, t.text().Of(body)...)
	}
}
