package datadog

import "github.com/spanstatsd/spanstatsd/internal/span/spantable"

// v05 decodes /v0.5/traces: a dictionary of strings, followed by an array of traces. A trace is an
// array of spans, and a span is an array of twelve values that refer to strings by index.
type v05 struct{ *Decoder }

func (d v05) readPayload() {
	d.Array()
	d.readDictionary()
	for n := d.readTraceCount(); n > 0 && !d.Failed(); n-- {
		g := d.beginTrace()
		for n := d.Array(); n > 0 && !d.Failed(); n-- {
			d.readSpan()
		}
		d.payloadTags.override(&d.trace.processTags)
		d.endTrace(g)
	}
	d.list.End = d.At()
	d.endPayload()
}

// readDictionary reads the strings of the payload, and looks up the label of each string once
// instead of once per span. It fails if a name with a label occurs twice: the agent compares names
// by index, so it would treat the two as different tags. The empty string is normally the first
// one. If it is at another index, it gets labelMisplacedEmpty, and checkEmptyStrings checks each
// span that refers to it. A second empty string fails.
func (d v05) readDictionary() {
	var seen spantable.LabelSet
	for n := d.Array(); n > 0 && !d.Failed(); n-- {
		text := d.readInlineText()
		label := d.names.Find(bytesOf(d.body, text))
		if label != spantable.Other && seen.Has(label) {
			d.Fail()
		}
		seen.Add(label)
		isFirst := len(d.strings.texts) == 0
		if text.Len == 0 && !isFirst {
			if d.strings.hasMisplacedEmpty || d.strings.texts[0].Len == 0 {
				d.Fail() // a second empty string
			}
			d.strings.hasMisplacedEmpty, label = true, labelMisplacedEmpty
		}
		d.addString(text, label)
	}
}

func (d v05) readSpan() {
	s := d.beginSpan(spantable.KindUnknown)
	if d.Array() != int(v05FieldCount) {
		d.Fail()
	}
	pos := d.At()
	for f := fieldService; f <= v05FieldCount && !d.Failed(); f++ {
		pos = d.readField(s, f, pos)
	}
	d.Seek(pos)
	d.trace.applyRootPriority(s.Parent)
	if d.strings.hasMisplacedEmpty {
		d.checkEmptyStrings(s)
	}
}

// checkEmptyStrings rejects a span that uses the empty string of a dictionary in which it is not the
// first string. dd-trace-java writes such dictionaries if a span has no type. Recent agents move the
// empty string to the front, and then read the previous first string wherever a span refers to the
// empty one; older agents read the empty string. So only values that don't affect statistics may be empty:
// tags without a label, and the type of a span that the rules ignore.
func (d v05) checkEmptyStrings(s *spantable.Span) {
	usesEmpty := s.Service.Len == 0 || s.Name.Len == 0 || s.Resource.Len == 0
	for _, t := range d.table.TagsOf(s) {
		isEmptyText := t.Value == spantable.IsText && t.Text().Len == 0
		if isEmptyText || t.Label == labelMisplacedEmpty {
			usesEmpty = true
		}
	}
	if usesEmpty {
		d.Fail()
	}
	s.HasUnknownType = s.Type.Len == 0 // a rule rejects the payload if it counts the span
}
