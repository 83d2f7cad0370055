package datadog

import (
	"math"
	"strconv"
	"unicode/utf8"

	agent "github.com/spanstatsd/spanstatsd/client/rules"
	decode "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// tags are those of the selected span, as a rulebook reads them.
type tags struct {
	spantable.Selected
	table *spantable.Table
	book  *rulebook
	made  []byte // texts that do not stand in the body as they must be
}

// tag is the selected span's, nil where it has none.
func (r *tags) tag(l label) *spantable.Tag { return r.Tag(r.table, l) }

// text is a text as valid UTF-8, repaired as the agent does it.
func (r *tags) text(t spantable.Text) []byte {
	raw := r.table.Bytes(t)
	r.table.Charge(t.Len)
	if utf8.Valid(raw) {
		return raw
	}
	start := len(r.made)
	for _, char := range spantable.View(raw) {
		r.made = utf8.AppendRune(r.made, char)
	}
	if len(r.made) > r.table.Limits.DerivedBytes {
		r.table.Fail(spantable.ErrTooMuch)
	}
	return r.made[start:]
}

// clone is a copy of a text.
func (r *tags) clone(t spantable.Text) string { return string(r.text(t)) }

// view is a text that is good for as long as the body.
func (r *tags) view(t spantable.Text) string { return spantable.View(r.text(t)) }

// plain is a tag's text, where it was written as text.
func (r *tags) plain(l label) string {
	if t := r.tag(l); t != nil && t.Value == spantable.IsText {
		return r.view(t.Text())
	}
	return ""
}

// written is a tag's value as the agent writes any as text.
func (r *tags) written(l label) string {
	t := r.tag(l)
	if t == nil {
		return ""
	}
	start := len(r.made)
	switch t.Value {
	case spantable.IsText:
		return r.view(t.Text())
	case spantable.IsNumber:
		r.made = strconv.AppendFloat(r.made, math.Float64frombits(t.Bits), 'f', -1, 64)
	case spantable.IsInteger:
		r.made = strconv.AppendInt(r.made, int64(t.Bits), 10)
	case spantable.IsBool:
		r.made = strconv.AppendBool(r.made, t.Bits == 1)
	case spantable.IsBytes:
		return r.table.String(t.Text())
	default:
		r.table.Fail(decode.ErrUnparsable) // only the agent can say how that reads
	}
	return spantable.View(r.made[start:])
}

// number is a tag's value as the agent reads a number, also from text, or as a tracer does.
func (r *tags) number(l label) (float64, bool) {
	t := r.tag(l)
	switch {
	case t == nil:
		return 0, false
	case t.Value != spantable.IsText:
		return t.Float()
	case !r.book.mending:
		return 0, false
	}
	if s := r.table.Bytes(t.Text()); len(s) > 0 && s[0] <= '9' || len(s) > 2 { // "1", "-1", ".5", "inf"
		f, err := strconv.ParseFloat(spantable.View(s), 64)
		return f, err == nil
	}
	return 0, false
}

func (r *tags) isOne(l label) bool {
	n, ok := r.number(l)
	return ok && n == 1
}

// whole is the value as the agent reads a whole number: not from text.
func whole(t *spantable.Tag) (int64, bool) {
	switch t.Value {
	case spantable.IsInteger:
		return int64(t.Bits), true
	case spantable.IsNumber:
		return agent.WholeNumber(math.Float64frombits(t.Bits))
	}
	return 0, false
}

// joined is a tag in one text.
func (r *tags) joined(name, value string) string {
	start := len(r.made)
	r.made = append(append(append(r.made, name...), ':'), value...)
	return spantable.View(r.made[start:])
}
