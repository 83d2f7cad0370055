package datadog

import "github.com/spanstatsd/spanstatsd/internal/span/spantable"

// v05 is the format of /v0.5/traces: a dictionary of strings, then traces as arrays of spans as
// arrays of twelve, with numbers for strings.
type v05 struct{ *Decoder }

func (d v05) read() {
	d.Array()
	d.dictionary()
	for n := d.beginList(); n > 0 && !d.Failed(); n-- {
		g := d.beginTrace()
		for n := d.Array(); n > 0 && !d.Failed(); n-- {
			d.span()
		}
		d.said.override(&d.trace.texts)
		d.endTrace(g)
	}
	d.list.End = d.At()
	d.sayTexts()
}

// dictionary reads the strings, and for each whether it names a tag that a rule asks for: once,
// and not for each span. Names that stand there twice only the agent can judge: it finds a
// string by its place.
func (d v05) dictionary() {
	var seen spantable.LabelSet
	for n := d.Array(); n > 0 && !d.Failed(); n-- {
		text := d.looseText()
		l := d.names.Find(bytesOf(d.body, text))
		if l != spantable.Other && seen.Has(l) {
			d.Fail()
		}
		seen.Add(l)
		if s := &d.strings; text.Len == 0 && len(s.texts) > 0 {
			if s.misplaced || s.texts[0].Len == 0 {
				d.Fail() // a second empty one
			}
			s.misplaced, l = true, labelMisplaced
		}
		d.addString(text, l)
	}
}

func (d v05) span() {
	s := d.beginSpan(spantable.KindUnknown)
	if d.Array() != int(fieldsV05) {
		d.Fail()
	}
	at := d.At()
	for f := fieldService; f <= fieldsV05 && !d.Failed(); f++ {
		at = d.readField(s, f, at)
	}
	d.Seek(at)
	d.trace.reconcile(s.Parent)
	if d.strings.misplaced {
		d.judge(s)
	}
}

// judge looks whether a span means the empty string of a body that has a misplaced one, which is the
// only empty one then. dd-trace-java writes the empty string of a v0.5 body where it first needs it,
// for a span without a type, and not first in the dictionary. Agents of today move it there, and then
// read the string that was the first where a span means the empty one; older ones do not. So who
// means it is left to the agent, but for what does not count: the type of a span that is not counted,
// and the value of a tag that no rule asks for.
func (d v05) judge(s *spantable.Span) {
	means := s.Service.Len == 0 || s.Name.Len == 0 || s.Resource.Len == 0
	for _, t := range d.table.TagsOf(s) {
		means = means || t.Label == labelMisplaced || t.Value == spantable.IsText && t.Text().Len == 0
	}
	s.HasUnknownType = s.Type.Len == 0
	if means {
		d.Fail()
	}
}
