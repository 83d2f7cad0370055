package datadog

import "github.com/spanstatsd/spanstatsd/internal/span/spantable"

// v05 decodes /v0.5/traces: a dictionary of strings, followed by an array of traces. A trace is an
// array of spans, and a span is an array of twelve values that refer to strings by index.
type v05 struct{ *Decoder }

func (d v05) readPayload() {
	d.Array()
	d.readDictionary()
	for traces := d.readTraceCount(); traces > 0 && !d.Failed(); traces-- {
		g := d.beginTrace()
		for spans := d.Array(); spans > 0 && !d.Failed(); spans-- {
			d.readSpan()
		}
		d.payloadTags.overrideWith(&d.traceTags.processTags)
		d.endTrace(g)
	}
	d.list.TracesEnd = d.Pos()
	d.endPayload()
}

// readDictionary reads the dictionary, the list of all strings in the payload, and finds the labels of the
// strings that are names of tags. It rejects the payload if such a name or the empty string occurs twice. The empty
// string is usually, but not always, the first one.
func (d v05) readDictionary() {
	var seen spantable.LabelSet
	for n := d.Array(); n > 0 && !d.Failed(); n-- {
		text := d.readInlineText()
		isFirst := len(d.strings.texts) == 0
		isMisplacedEmpty := text.Len == 0 && !isFirst
		if isMisplacedEmpty {
			d.addMisplacedEmpty(text)
			continue
		}
		label := d.names.Find(bytesOf(d.body, text))
		isTagName := label != spantable.Other
		if isTagName {
			if seen.Has(label) {
				d.Fail()
				return
			}
			seen.Add(label)
		}
		d.addString(text, label)
	}
}

// addMisplacedEmpty adds an empty string that follows other strings in the dictionary. It rejects the payload if the
// dictionary already has an empty string.
func (d v05) addMisplacedEmpty(empty spantable.Text) {
	isFirstEmpty := d.strings.texts[0].Len == 0
	if isFirstEmpty || d.strings.hasMisplacedEmpty {
		d.Fail()
		return
	}
	d.strings.hasMisplacedEmpty = true
	d.addString(empty, labelEmptyName)
}

func (d v05) readSpan() {
	s := d.beginSpan(spantable.KindUnknown)
	if d.Array() != int(v05FieldCount) {
		d.Fail()
	}
	pos := d.Pos()
	for f := fieldService; f <= v05FieldCount && !d.Failed(); f++ {
		pos = d.readField(s, f, pos)
	}
	d.Seek(pos)
	d.traceTags.keepRootPriority(s.Parent)
	if d.strings.hasMisplacedEmpty { // versions of the agent differ in how they read this string
		d.checkEmptyStrings(s)
	}
}

// checkEmptyStrings rejects the payload if the service, name or resource of the span s, or the name or value
// of a stored tag, is empty. It accepts an empty type, but sets s.HasUnknownType.
func (d v05) checkEmptyStrings(s *spantable.Span) {
	if s.Service.Len == 0 || s.Name.Len == 0 || s.Resource.Len == 0 {
		d.Fail()
	}
	for _, tag := range d.table.TagsOf(s) {
		isNameEmpty := tag.Label == labelEmptyName
		isValueEmpty := tag.Type == spantable.TypeText && tag.Text().Len == 0
		if isNameEmpty || isValueEmpty {
			d.Fail()
		}
	}
	s.HasUnknownType = s.Type.Len == 0
}
