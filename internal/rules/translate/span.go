package translate

import (
	"math"

	"github.com/spanstatsd/spanstatsd/client/rules"
	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	"github.com/spanstatsd/spanstatsd/internal/sampling/tracestate"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// maker makes spans of those of a request, resource by resource and scope by scope.
type maker struct {
	*vocabulary
	naming
	tags collected // of the span that is being made
	// What a resource and a scope give each of their spans, as tags, each label once.
	ofResource, ofScope []spantable.Tag
	said                ofTrace // by the resource
}

// readResource reads once what the selected resource gives each of its spans: of several attributes
// that become one tag, the first that says something.
func (t *maker) readResource(tags []spantable.Tag) {
	t.tags.reset()
	t.collect(tags, false)
	t.ofResource = t.tags.appendTexts(t.ofResource[:0])
	t.said = ofTrace{
		version: t.normal(t.text(attrVersion)), env: t.normal(t.first(attrEnvironment, attrOldEnvironment)),
	}
}

// readScope reads once what a scope gives each of its spans, whatever they say themselves: of
// several attributes of one name, the last.
func (t *maker) readScope(tags []spantable.Tag) {
	t.tags.reset()
	for i := range tags {
		if l := t.plain[tags[i].Label]; t.isRead(&tags[i], l) {
			t.tags.replaceText(l, t.asText(&tags[i]))
		}
	}
	t.ofScope = t.tags.appendTexts(t.ofScope[:0])
}

// fill makes a span of one of the request, of a scope and a resource that were read.
func (t *maker) fill(made, from *spantable.Span, state []byte) {
	made.ID, made.Parent, made.Start, made.Duration = from.ID, from.Parent, from.Start, from.Duration
	made.Name, made.Kind = from.Name, from.Kind
	if from.Status == spantable.StatusError {
		made.Status = spantable.StatusError
	}
	t.selectSpan(from)
	t.names(made)
	// Each tag is that of the first that says something: what the ingest makes of several attributes,
	// the span's own, and those of its resource. Its scope goes before all.
	t.tags.reset()
	t.derive(state)
	t.collect(t.request.TagsOf(from), true)
	said := t.said
	if t.span.Set.Has(attrVersion) {
		said.version = t.normal(t.text(attrVersion))
	}
	if t.span.Set.Has(attrEnvironment) || t.span.Set.Has(attrOldEnvironment) {
		said.env = t.normal(t.first(attrEnvironment, attrOldEnvironment))
	}
	t.tags.makeText(t.version, said.version)
	t.tags.makeText(t.env, said.env)
	for i := range t.ofResource {
		t.tags.setText(t.ofResource[i].Label, t.ofResource[i].Text())
	}
	for i := range t.ofScope {
		l, text := t.ofScope[i].Label, t.ofScope[i].Text()
		if t.tags.replaceText(l, text); l == t.kind {
			made.Kind = kindNamed(t.to.String(text))
		}
	}
	t.tags.makeText(t.dbName, t.text(attrNamespace))
	t.tags.appendTo(t.to, made, &t.rules)
}

// collect collects attributes of a span or its resource. Those of a span may be numbers.
func (t *maker) collect(tags []spantable.Tag, hasNumbers bool) {
	for i := range tags {
		tag := &tags[i]
		l := t.targets[tag.Label]
		if !t.isRead(tag, l) {
			continue
		}
		if n, is := tag.Float(); !is || tag.Value == spantable.IsBool || !hasNumbers {
			t.tags.setText(l, t.asText(tag))
		} else {
			t.tags.setNumber(l, n)
		}
	}
}

// isRead says whether an attribute becomes a tag that somebody asks for.
func (t *maker) isRead(tag *spantable.Tag, as spantable.Label) bool {
	if as != spantable.Other && tag.Value == spantable.IsNested {
		t.to.Fail(otlp.ErrUnparsable) // only the agent can say how that reads
		return false
	}
	return as != spantable.Other
}

// derive collects what the ingest makes of several attributes.
func (t *maker) derive(state []byte) {
	if code, ok := t.httpCode(); ok && code >= 0 {
		t.tags.setNumber(t.httpStatus, float64(code))
	}
	t.tags.makeText(t.grpcStatus, t.grpcCode())
	if n, ok := t.integer(attrMeasured); ok && n == 1 {
		t.tags.setNumber(t.measured, 1)
	}
	tag := t.span.Tag(&t.request.Table, attrSampleRate)
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
func (t *maker) httpCode() (code int64, ok bool) {
	for _, l := range [...]spantable.Label{attrHTTPStatus, attrNewHTTPStatus} {
		if !t.either.Has(l) {
			continue
		}
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
func (t *maker) grpcCode() spantable.Text {
	says := func(l spantable.Label) string { return t.to.String(t.text(l)) }
	for l := attrGRPCStatus; l <= attrRPCStatus; l++ {
		if !t.either.Has(l) {
			continue
		}
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

// collected are the tags of one span, by the labels that rules ask for. A tag may have a text and
// a number.
type collected struct {
	values [spantable.MaxLabels]value
	used   []spantable.Label
}

type value struct {
	text     spantable.Text
	number   float64
	isSaid   bool // there is a text, though it may be empty
	isNumber bool
	isUsed   bool
}

func (c *collected) reset() {
	for _, l := range c.used {
		c.values[l] = value{}
	}
	c.used = c.used[:0]
}

// of is the value of a tag that is about to be set.
func (c *collected) of(l spantable.Label) *value {
	v := &c.values[l]
	if !v.isUsed {
		v.isUsed = true
		c.used = append(c.used, l)
	}
	return v
}

// setText sets a text where there is none yet, or an empty one.
func (c *collected) setText(l spantable.Label, text spantable.Text) {
	v := c.of(l)
	if v.isSaid = true; v.text.Len == 0 {
		v.text = text
	}
}

// replaceText sets a text whatever there is.
func (c *collected) replaceText(l spantable.Label, text spantable.Text) {
	v := c.of(l)
	v.text, v.isSaid = text, true
}

// makeText sets a text that the ingest makes itself, unless there is one, or nobody asks for it.
func (c *collected) makeText(l spantable.Label, text spantable.Text) {
	if l != spantable.Other && !c.values[l].isSaid && text.Len > 0 {
		c.setText(l, text)
	}
}

// setNumber sets a number where there is none yet, and somebody asks for it.
func (c *collected) setNumber(l spantable.Label, n float64) {
	if l == spantable.Other {
		return
	}
	if v := c.of(l); !v.isNumber {
		v.number, v.isNumber = n, true
	}
}

// appendTexts appends the texts, also those that are empty, each label once.
func (c *collected) appendTexts(dst []spantable.Tag) []spantable.Tag {
	for _, l := range c.used {
		text := spantable.TextBits(c.values[l].text)
		dst = append(dst, spantable.Tag{Label: l, Value: spantable.IsText, Bits: text})
	}
	return dst
}

// appendTo gives a span the tags that were collected, of each the value that counts.
func (c *collected) appendTo(to *spantable.Table, s *spantable.Span, by *[spantable.MaxLabels]numberRule) {
	s.First = uint32(len(to.Tags))
	for _, l := range c.used {
		v := &c.values[l]
		tag := spantable.Tag{Label: l, Value: spantable.IsText, Bits: spantable.TextBits(v.text)}
		if v.isNumber && by[l].takesNumber(v) {
			tag.Value, tag.Bits = spantable.IsNumber, math.Float64bits(v.number)
		} else if v.text.Len == 0 || by[l] == numberAlone || by[l] == noTag {
			continue
		}
		to.Tags = append(to.Tags, tag)
	}
	if s.Last = uint32(len(to.Tags)); len(to.Tags) > to.Limits.Tags {
		to.Fail(spantable.ErrTooMuch)
	}
}

// takesNumber says whether the number of a tag counts, and not its text.
func (r numberRule) takesNumber(v *value) bool {
	switch r {
	case numberAlone:
		return true
	case textFirst:
		return v.text.Len == 0
	case wholeFirst:
		_, isWhole := rules.WholeNumber(v.number)
		return isWhole
	}
	return false
}
