package datadog

import (
	"math"
	"strconv"
	"unicode/utf8"

	agent "github.com/spanstatsd/spanstatsd/client/rules"
	decode "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// tags reads the tags of the selected span by the rules of a rulebook.
type tags struct {
	spantable.Selected
	table *spantable.Table
	book  *rulebook
	made  []byte // texts that differ from the body, or are not in it
}

// tag returns a tag of the selected span, or nil.
func (r *tags) tag(l label) *spantable.Tag { return r.Tag(r.table, l) }

// text returns a text as valid UTF-8. Like the agent, it replaces invalid bytes.
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

// clone returns a copy of a text.
func (r *tags) clone(t spantable.Text) string { return string(r.text(t)) }

// view returns a text that is valid until the next body.
func (r *tags) view(t spantable.Text) string { return spantable.View(r.text(t)) }

// plain returns the value of a tag that is text, otherwise an empty string.
func (r *tags) plain(l label) string {
	if t := r.tag(l); t != nil && t.Value == spantable.IsText {
		return r.view(t.Text())
	}
	return ""
}

// formatted returns the value of a tag as text. It formats other types like the agent.
func (r *tags) formatted(l label) string {
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
		r.table.Fail(decode.ErrUnparsable) // only the agent can convert a nested value
	}
	return spantable.View(r.made[start:])
}

// number returns the value of a tag as a number. By the agent's rules, text is parsed.
func (r *tags) number(l label) (float64, bool) {
	t := r.tag(l)
	switch {
	case t == nil:
		return 0, false
	case t.Value != spantable.IsText:
		return t.Float()
	case !r.book.normalizing:
		return 0, false
	}
	if s := r.table.Bytes(t.Text()); len(s) > 0 && s[0] <= '9' || len(s) > 2 { // "1", "-1", ".5", "inf"
		f, err := strconv.ParseFloat(spantable.View(s), 64)
		return f, err == nil
	}
	return 0, false
}

// isOne reports whether the value of a tag is 1.
func (r *tags) isOne(l label) bool {
	n, ok := r.number(l)
	return ok && n == 1
}

// integer returns the value of a tag as an integer. Like the agent, it does not parse text.
func integer(t *spantable.Tag) (int64, bool) {
	switch t.Value {
	case spantable.IsInteger:
		return int64(t.Bits), true
	case spantable.IsNumber:
		return agent.WholeNumber(math.Float64frombits(t.Bits))
	}
	return 0, false
}

// joined returns a tag as name:value.
func (r *tags) joined(name, value string) string {
	start := len(r.made)
	r.made = append(append(append(r.made, name...), ':'), value...)
	return spantable.View(r.made[start:])
}
