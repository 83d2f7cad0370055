package datadog

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	agent "github.com/spanstatsd/spanstatsd/client/rules"
	decode "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// tags reads the tags of the current span by the rules of a rulebook.
type tags struct {
	spantable.Selected
	table    *spantable.Table
	rulebook *rulebook
	scratch  []byte // texts that differ from the body, or are not in it
}

// selectSpan makes s the current span, whose tags the other methods read.
func (r *tags) selectSpan(s *spantable.Span) { r.Select(r.table, s.TagStart, s.TagEnd) }

// findTag returns a tag of the current span, or nil.
func (r *tags) findTag(l label) *spantable.Tag { return r.Tag(r.table, l) }

// validBytes returns the bytes of a text in the table as valid UTF-8. Like the Datadog agent, it
// replaces each invalid byte by U+FFFD. It records an error in the table if the body refers to too much
// text. The result must not be modified, and is valid until the next span is read.
func (r *tags) validBytes(t spantable.Text) []byte {
	raw := r.table.Bytes(t)
	r.table.AddReadBytes(t.Len) // records the error
	if utf8.Valid(raw) {
		return raw
	}
	start := len(r.scratch)
	for _, char := range spantable.View(raw) { // range decodes an invalid byte as U+FFFD
		r.scratch = utf8.AppendRune(r.scratch, char)
	}
	if len(r.scratch) > r.table.Limits.DerivedBytes {
		r.table.Fail(spantable.ErrTooMuch)
	}
	return r.scratch[start:]
}

// validText returns a text as valid UTF-8. The result is valid until the next span is read.
func (r *tags) validText(t spantable.Text) string { return spantable.View(r.validBytes(t)) }

// cloneText returns a copy of a text as valid UTF-8.
func (r *tags) cloneText(t spantable.Text) string { return string(r.validBytes(t)) }

// tagText returns the value of a tag of the current span. It returns "" if the span does not have the
// tag, or if the value is not a text. The result is valid until the next span is read.
func (r *tags) tagText(l label) string {
	if t := r.findTag(l); t != nil && t.Type == spantable.TypeText {
		return r.validText(t.Text())
	}
	return ""
}

// formatTag returns the value of a tag of the current span as text, or "" if there is no such tag. The
// result is valid until the next span is read. If the value is a list or a map, which only the Datadog
// agent can format, formatTag records an error in the table.
func (r *tags) formatTag(l label) string {
	t := r.findTag(l)
	if t == nil {
		return ""
	}
	switch t.Type {
	case spantable.TypeText:
		return r.validText(t.Text())
	case spantable.TypeBytes:
		return r.table.String(t.Text())
	case spantable.TypeNumber, spantable.TypeInteger, spantable.TypeBool:
		start := len(r.scratch)
		r.scratch = appendNumber(r.scratch, t)
		return spantable.View(r.scratch[start:]) // not a copy
	}
	r.table.Fail(decode.ErrUnparsable)
	return ""
}

// formatInteger returns n in decimal digits. The result is valid until the next span is read.
func (r *tags) formatInteger(n int64) string {
	start := len(r.scratch)
	r.scratch = strconv.AppendInt(r.scratch, n, 10)
	return spantable.View(r.scratch[start:])
}

// appendNumber appends the value of a tag, a number, an integer or a bool, to dst as text.
func appendNumber(dst []byte, t *spantable.Tag) []byte {
	switch t.Type {
	case spantable.TypeInteger:
		return strconv.AppendInt(dst, int64(t.Bits), 10)
	case spantable.TypeBool:
		return strconv.AppendBool(dst, t.Bits == 1)
	}
	const shortest, bitSize = -1, 64
	return strconv.AppendFloat(dst, math.Float64frombits(t.Bits), 'f', shortest, bitSize)
}

// tagNumber returns the value of a tag of the current span as a number. By the Datadog agent's rules,
// the value can also be a text such as "0.5". ok is false if there is no such tag, or if its value is
// not a number.
func (r *tags) tagNumber(l label) (n float64, ok bool) {
	t := r.findTag(l)
	if t == nil {
		return 0, false
	}
	if t.Type != spantable.TypeText {
		return t.Float()
	}
	if !r.rulebook.followsAgent {
		return 0, false
	}
	return parseNumber(r.table.String(t.Text()))
}

// parseNumber parses a number like strconv.ParseFloat. ok is false if text is not a number. Unlike
// ParseFloat, it allocates no error for most texts that are not numbers.
func parseNumber(text string) (n float64, ok bool) {
	const firstBytes = "+-.0123456789iInN" // of all valid numbers, such as -1, .5, inf or NaN
	if text == "" || strings.IndexByte(firstBytes, text[0]) < 0 {
		return 0, false
	}
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil
}

// isOne reports whether the current span has the tag l, and its value is 1.
func (r *tags) isOne(l label) bool {
	n, ok := r.tagNumber(l)
	return ok && n == 1
}

// integerValue returns the value of a tag as an integer. The value can be an integer or a float without
// a fraction, such as 200.0. ok is false for all other values, including texts such as "200".
func integerValue(t *spantable.Tag) (n int64, ok bool) {
	switch t.Type {
	case spantable.TypeInteger:
		return int64(t.Bits), true
	case spantable.TypeNumber:
		return agent.WholeNumber(math.Float64frombits(t.Bits))
	}
	return 0, false
}

// joinTag returns name:value. The result is valid until the next span.
func (r *tags) joinTag(name, value string) string {
	start := len(r.scratch)
	r.scratch = append(r.scratch, name...)
	r.scratch = append(r.scratch, ':')
	r.scratch = append(r.scratch, value...)
	return spantable.View(r.scratch[start:])
}
