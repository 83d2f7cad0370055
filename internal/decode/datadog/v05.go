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

// readDictionary reads the strings of the payload and assigns a label to each. It rejects the payload
// if the name of a tag with a label occurs twice, because the agent would treat the two as different
// tags. An empty string that is not the first string gets labelMisplacedEmpty, since not all versions
// of the agent read it in the same way.
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
		isMisplacedEmpty := text.Len == 0 && !isFirst
		if isMisplacedEmpty {
			if d.strings.hasMisplacedEmpty || d.strings.texts[0].Len == 0 {
				d.Fail() // a second empty string
			}
			d.strings.hasMisplacedEmpty = true
			label = labelMisplacedEmpty
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

// checkEmptyStrings rejects the payload if s refers to an empty string that is not the first string of
// the dictionary, as dd-trace-java writes it if a span has no type. Older agents read such a string as
// empty, and recent ones as the first string of the dictionary. Only tags without a label and the type
// of a span that is not counted may refer to it.
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
