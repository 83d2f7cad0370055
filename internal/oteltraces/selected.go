package oteltraces

import (
	"math"
	"strconv"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/client/rules"
)

// selected is which attributes a span has.
type selected struct {
	set labelSet
	at  [maxLabels]uint32 // by label in the set: the place of its tag
}

// choose makes a span's attributes findable by their labels, and its resource's behind them.
// Of two with one label the first counts, as in OpenTelemetry's own decoders.
func (s *selected) choose(p *payload, rec *record, r *resource) {
	s.set = labelSet{}
	s.add(p.tags, int(rec.first), int(rec.last))
	s.add(p.tags, r.ownTag, r.lastTag)
}

func (s *selected) add(tags []tag, first, last int) {
	for i := first; i < last; i++ {
		if l := tags[i].label; !s.set.has(l) {
			s.at[l] = uint32(i)
			s.set.add(l)
		}
	}
}

// tag is the span's first tag of some labels, nil where it has none.
func (c *Counter) tag(labels ...label) *tag {
	for _, l := range labels {
		if c.selected.set.has(l) {
			return &c.payload.tags[c.selected.at[l]]
		}
	}
	return nil
}

// written is the value of the first tag of some labels as text, whatever it was written as.
func (c *Counter) written(labels ...label) string {
	t := c.tag(labels...)
	switch {
	case t == nil:
		return ""
	case t.kind == isText:
		return view(t.text().of(c.payload.body))
	}
	start := len(c.scratch)
	c.scratch = t.append(c.scratch, c.payload.body)
	return view(c.scratch[start:])
}

// append appends a value as text. A list is none.
func (t *tag) append(dst, body []byte) []byte {
	switch t.kind {
	case isText:
		return append(dst, t.text().of(body)...)
	case isInteger:
		return strconv.AppendInt(dst, int64(t.bits), 10)
	case isBool:
		return strconv.AppendBool(dst, t.bits == 1)
	}
	if n, ok := t.number(); ok {
		return appendNumber(dst, n)
	}
	return dst
}

// appendNumber appends a number as OpenTelemetry writes one as text, which is as in JSON.
func appendNumber(dst []byte, n float64) []byte {
	if abs := math.Abs(n); abs == 0 || abs >= 1e-6 && abs < 1e21 || math.IsNaN(n) || math.IsInf(n, 0) {
		return strconv.AppendFloat(dst, n, 'f', -1, 64)
	}
	dst = strconv.AppendFloat(dst, n, 'e', -1, 64)
	if end := len(dst); string(dst[end-4:end-1]) == "e-0" {
		dst = append(dst[:end-2], dst[end-1]) // the exponent has no zero before it
	}
	return dst
}

// whole is a value as a whole number, also from text.
func (c *Counter) whole(t *tag) (int64, bool) {
	switch t.kind {
	case isInteger:
		return int64(t.bits), true
	case isText:
		return rules.ParseStatus(view(t.text().of(c.payload.body)))
	}
	if n, ok := t.number(); ok {
		return rules.WholeNumber(n)
	}
	return 0, false
}

// view is bytes of the body as a string, without copying them. It is good for as long as
// the body is not used again.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
