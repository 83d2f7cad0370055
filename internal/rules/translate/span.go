package translate

import (
	"math"

	"github.com/spanstatsd/spanstatsd/client/rules"
	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	"github.com/spanstatsd/spanstatsd/internal/sampling/tracestate"
	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

// addSpan adds a span of the request to the table, and returns what it says of its trace.
func (t *Translator) addSpan(number int) ofTrace {
	from, place := &t.request.Spans[number], &t.request.Places[number]
	made := t.to.AddSpan(from.Kind)
	if known, isKnown := t.memo.find(t.request, from, place, len(t.to.Spans)-1); isKnown {
		*made = t.to.Spans[known]
	} else {
		made.Name = from.Name
		t.selectSpan(from)
		t.names(made)
		t.collect(from, place)
		t.addTags(made)
	}
	made.ID, made.Parent, made.Start, made.Duration = from.ID, from.Parent, from.Start, from.Duration
	if made.Status = spantable.StatusUnset; from.Status == spantable.StatusError {
		made.Status = spantable.StatusError
	}
	return t.ofTrace(t.to.TagsOf(made))
}

// collect collects a span's tags, each from the first that says something: the scope, what the
// ingest makes of several attributes, the span's own, and those of its resource.
func (t *Translator) collect(s *spantable.Span, place *otlp.Place) {
	r := t.request
	t.tags.reset()
	t.derive(s, r.Bytes(place.State))
	t.collectFrom(r.TagsOf(s), true)
	t.tags.makeText(t.version, t.normal(t.text(attrVersion)))
	t.tags.makeText(t.env, t.normal(t.text(attrEnvironment, attrOldEnvironment)))
	of := &r.Resources[place.Resource]
	t.collectFrom(r.Tags[of.FirstTag:of.LastTag], false)
	scope := &r.Scopes[place.Scope]
	for i := scope.FirstTag; i < scope.LastTag; i++ {
		if tag := &r.Tags[i]; t.isRead(tag, t.plain[tag.Label]) {
			v := t.tags.of(t.plain[tag.Label])
			v.text, v.isSaid = t.value(tag), true
		}
	}
	t.tags.makeText(t.dbName, t.text(attrNamespace))
}

// collectFrom collects attributes of a span or its resource. Those of a span may be numbers.
func (t *Translator) collectFrom(tags []spantable.Tag, hasNumbers bool) {
	for i := range tags {
		tag := &tags[i]
		l := t.targets[tag.Label]
		if !t.isRead(tag, l) {
			continue
		}
		if n, is := tag.Float(); !is || tag.Value == spantable.IsBool || !hasNumbers {
			t.tags.setText(l, t.value(tag))
		} else if t.rules[l] != textAlone {
			t.tags.setNumber(l, n)
		}
	}
}

// isRead says whether an attribute becomes a tag that somebody asks for.
func (t *Translator) isRead(tag *spantable.Tag, as spantable.Label) bool {
	if as != spantable.Other && tag.Value == spantable.IsNested {
		t.to.Fail(otlp.ErrUnread) // only the agent can say how that reads
		return false
	}
	return as != spantable.Other
}

// derive collects what the ingest makes of several attributes.
func (t *Translator) derive(s *spantable.Span, state []byte) {
	t.tags.makeText(t.kind, t.join(s.Kind.String()))
	if code, ok := t.httpCode(); ok && code >= 0 {
		t.tags.setNumber(t.httpStatus, float64(code))
	}
	t.tags.makeText(t.grpcStatus, t.grpcCode())
	if n, ok := t.integer(attrMeasured); ok && n == 1 {
		t.tags.setNumber(t.measured, 1)
	}
	tag := t.asked.span.Tag(&t.request.Table, attrSampleRate)
	if tag != nil && tag.Value != spantable.IsBool {
		if n, is := tag.Float(); is {
			t.tags.setNumber(t.rate, n)
		}
	}
	if len(state) > 0 {
		said := tracestate.Read(state)
		if rate, ok := said.Rate(); ok {
			t.tags.setNumber(t.rate, rate)
		}
	}
}

// httpCode is the status of a response over HTTP.
func (t *Translator) httpCode() (code int64, ok bool) {
	for _, l := range [...]spantable.Label{attrHTTPStatus, attrNewHTTPStatus} {
		if code, ok = t.integer(l); ok {
			return code, true
		}
		if code, ok = rules.ParseStatus(t.to.String(t.text(l))); ok {
			return code, true
		}
	}
	return 0, false
}

// grpcCode is the status of a call by gRPC, as it was written.
func (t *Translator) grpcCode() spantable.Text {
	says := func(l spantable.Label) string { return t.to.String(t.text(l)) }
	for l := attrGRPCStatus; l <= attrRPCStatus; l++ {
		if l == attrRPCStatus && !rules.CallsGRPC(says(attrRPCSystemName), says(attrRPCSystem)) {
			break
		}
		if text := t.text(l); text.Len > 0 {
			return text
		}
		if n, ok := t.integer(l); ok {
			return t.decimal(n)
		}
	}
	return spantable.Text{}
}

// addTags gives a span the tags that were collected, of each the value that counts, and its kind.
func (t *Translator) addTags(s *spantable.Span) {
	add := func(l spantable.Label, as spantable.Value, bits uint64) {
		t.to.Tags = append(t.to.Tags, spantable.Tag{Label: l, Value: as, Bits: bits})
	}
	for _, l := range t.tags.used {
		if v := &t.tags.values[l]; l != spantable.Other && v.text.Len > 0 && t.rules[l] != numberAlone {
			add(l, spantable.IsText, spantable.TextBits(v.text))
		}
	}
	for _, l := range t.tags.used { // behind texts of the same tag
		v := &t.tags.values[l]
		if l == spantable.Other || !v.isNumber || t.rules[l] == textFirst && v.text.Len > 0 {
			continue
		}
		add(l, spantable.IsNumber, math.Float64bits(v.number))
	}
	if s.Last = uint32(len(t.to.Tags)); len(t.to.Tags) > t.to.Limits.Tags {
		t.to.Fail(spantable.ErrTooMuch)
	}
	s.Kind = kindNamed(t.to.String(t.tags.values[t.kind].text))
}

// kindNamed is the kind of a name, as the agent reads it.
func kindNamed(name string) spantable.Kind {
	for _, k := range [...]spantable.Kind{
		spantable.KindServer, spantable.KindClient, spantable.KindProducer, spantable.KindConsumer,
		spantable.KindUnspecified,
	} {
		if name == k.String() {
			return k
		}
	}
	return spantable.KindInternal
}

// ofTrace is what the tags of a span say of its trace.
func (t *Translator) ofTrace(tags []spantable.Tag) (says ofTrace) {
	for i := range tags {
		if tags[i].Value != spantable.IsText {
			continue
		}
		switch tags[i].Label {
		case t.env:
			says.env = tags[i].Text()
		case t.version:
			says.version = tags[i].Text()
		case t.commit:
			says.commit = tags[i].Text()
		case t.origin:
			says.origin = tags[i].Text()
		}
	}
	return says
}
