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
		d.payloadTags.overrideWith(&d.trace.processTags)
		d.endTrace(g)
	}
	d.list.End = d.At()
	d.endPayload()
}

// readDictionary reads the dictionary, the list of all strings in the payload, and finds the strings
// that are names of tags to keep. An empty string that is not the first one gets labelMisplacedEmpty.
// If the same tag name or an empty string occurs twice, readDictionary rejects the payload.
func (d v05) readDictionary() {
	var seen spantable.LabelSet
	for n := d.Array(); n > 0 && !d.Failed(); n-- {
		text := d.readInlineText()
		label := d.names.Find(bytesOf(d.body, text))
		isTagName := label != spantable.Other
		if isTagName && seen.Has(label) {
			d.Fail()
		}
		seen.Add(label)
		isFirst := len(d.strings.texts) == 0
		isMisplacedEmpty := text.Len == 0 && !isFirst
		if isMisplacedEmpty {
			isSecondEmpty := d.strings.hasMisplacedEmpty || d.strings.texts[0].Len == 0
			if isSecondEmpty {
				d.Fail()
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
	d.trace.restoreRootPriority(s.Parent)
	if d.strings.hasMisplacedEmpty {
		d.checkEmptyStrings(s)
	}
}

// checkEmptyStrings rejects the payload if s uses an empty string, because versions of the Datadog
// agent read it differently. The caller must have found an empty string after the first string of the
// dictionary. An empty type only sets s.HasUnknownType, and empty values of tags that are not kept are
// accepted.
func (d v05) checkEmptyStrings(s *spantable.Span) {
	usesEmpty := s.Service.Len == 0 || s.Name.Len == 0 || s.Resource.Len == 0
	for _, t := range d.table.TagsOf(s) {
		isEmptyText := t.Type == spantable.TypeText && t.Text().Len == 0
		if isEmptyText || t.Label == labelMisplacedEmpty {
			usesEmpty = true
		}
	}
	if usesEmpty {
		d.Fail()
	}
	s.HasUnknownType = s.Type.Len == 0 // a rule that counts the span rejects the payload
}
