package translate

import (
	"math"

	"github.com/spanstatsd/spanstatsd/client/rules"
	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	"github.com/spanstatsd/spanstatsd/internal/sampling/tracestate"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// spanBuilder builds Datadog spans from the OTLP spans of a request. The caller selects and reads
// each resource and scope before it builds their spans.
type spanBuilder struct {
	*vocabulary
	naming
	tags collected // tags of the span that is being built
	// Tags that the current resource and scope add to each of their spans; each label occurs once.
	resourceTags, scopeTags []spantable.Tag
	resourceFacts           traceFacts // environment and version of the current resource
}

// readResource sets resourceTags and resourceFacts from the attributes of the selected resource. If
// several attributes become one tag, the first non-empty one counts.
func (t *spanBuilder) readResource(tags []spantable.Tag) {
	t.tags.reset()
	t.collect(tags, false)
	t.resourceTags = t.tags.appendTexts(t.resourceTags[:0])
	t.resourceFacts = traceFacts{
		version: t.normal(t.text(attrVersion)), env: t.normal(t.first(attrEnvironment, attrOldEnvironment)),
	}
}

// readScope sets scopeTags from the attributes of a scope. The agent adds these tags to each span
// of the scope, and they replace tags of the span with the same name. If an attribute occurs
// several times, the last one counts.
func (t *spanBuilder) readScope(tags []spantable.Tag) {
	t.tags.reset()
	for i := range tags {
		if l := t.plain[tags[i].Label]; t.isRead(&tags[i], l) {
			t.tags.replaceText(l, t.asText(&tags[i]))
		}
	}
	t.scopeTags = t.tags.appendTexts(t.scopeTags[:0])
}

// fill builds the span built from the OTLP span from. The resource and scope of the span must have
// been read. state is the span's tracestate.
func (t *spanBuilder) fill(built, from *spantable.Span, state []byte) {
	built.ID, built.Parent, built.Start, built.Duration = from.ID, from.Parent, from.Start, from.Duration
	built.Name, built.Kind = from.Name, from.Kind
	if from.Status == spantable.StatusError {
		built.Status = spantable.StatusError
	}
	t.selectSpan(from)
	t.names(built)
	// If a tag has several sources, the first non-empty one counts: values that the ingest derives,
	// the span's attributes, then the resource's. The scope's attributes replace all of them.
	t.tags.reset()
	t.derive(state)
	t.collect(t.request.TagsOf(from), true)
	facts := t.resourceFacts
	if t.span.Set.Has(attrVersion) {
		facts.version = t.normal(t.text(attrVersion))
	}
	if t.span.Set.Has(attrEnvironment) || t.span.Set.Has(attrOldEnvironment) {
		facts.env = t.normal(t.first(attrEnvironment, attrOldEnvironment))
	}
	t.tags.makeText(t.version, facts.version)
	t.tags.makeText(t.env, facts.env)
	for i := range t.resourceTags {
		t.tags.setText(t.resourceTags[i].Label, t.resourceTags[i].Text())
	}
	for i := range t.scopeTags {
		l, text := t.scopeTags[i].Label, t.scopeTags[i].Text()
		t.tags.replaceText(l, text)
		if l == t.kind {
			built.Kind = kindNamed(t.to.String(text))
		}
	}
	t.tags.makeText(t.dbName, t.text(attrNamespace))
	t.tags.appendTo(t.to, built, &t.rules)
}

// collect collects the tags that attributes of a span or a resource become. hasNumbers reports
// whether numbers stay numbers, as for a span; otherwise they become text.
func (t *spanBuilder) collect(tags []spantable.Tag, hasNumbers bool) {
	for i := range tags {
		tag := &tags[i]
		l := t.targets[tag.Label]
		if !t.isRead(tag, l) {
			continue
		}
		n, isNumber := tag.Float()
		if isNumber && tag.Value != spantable.IsBool && hasNumbers {
			t.tags.setNumber(l, n)
		} else {
			t.tags.setText(l, t.asText(tag))
		}
	}
}

// isRead reports whether a rule asks for target, the tag that an attribute becomes. If the
// attribute is a list or a map, it fails the table instead, since only the agent can convert those
// to a tag.
func (t *spanBuilder) isRead(tag *spantable.Tag, target spantable.Label) bool {
	if target != spantable.Other && tag.Value == spantable.IsNested {
		t.to.Fail(otlp.ErrUnparsable)
		return false
	}
	return target != spantable.Other
}

// derive collects the tags that the ingest derives: HTTP and gRPC status, whether the span is
// measured, and the sample rate. state is the span's tracestate.
func (t *spanBuilder) derive(state []byte) {
	if code, ok := t.httpCode(); ok && code >= 0 {
		t.tags.setNumber(t.httpStatus, float64(code))
	}
	t.tags.makeText(t.grpcStatus, t.grpcCode())
	if n, ok := t.integer(attrMeasured); ok && n == 1 {
		t.tags.setNumber(t.measured, 1)
	}
	tag := t.span.Tag(&t.request.Table, attrSampleRate)
	if tag != nil && tag.Value != spantable.IsBool {
		if n, ok := tag.Float(); ok {
			t.tags.setNumber(t.rate, n)
		}
	}
	if len(state) > 0 {
		parsed := tracestate.Read(state)
		if rate, ok := parsed.Rate(); ok {
			t.tags.setNumber(t.rate, rate)
		}
	}
}

// httpCode returns the HTTP response status of the selected span.
func (t *spanBuilder) httpCode() (code int64, ok bool) {
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

// grpcCode returns the gRPC status of the selected span, as it was sent.
func (t *spanBuilder) grpcCode() spantable.Text {
	str := func(l spantable.Label) string { return t.to.String(t.text(l)) }
	for l := attrGRPCStatus; l <= attrRPCStatus; l++ {
		if !t.either.Has(l) {
			continue
		}
		if l == attrRPCStatus && !rules.CallsGRPC(str(attrRPCSystemName), str(attrRPCSystem)) {
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

// kindNamed returns the span kind with this name. As for the agent, an unknown name is internal.
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

// collected is the tags of one span that rules ask for, by label. A tag may have both a text and a
// number.
type collected struct {
	values [spantable.MaxLabels]value
	used   []spantable.Label // labels that have a value
}

// value is the value of a tag.
type value struct {
	text      spantable.Text
	number    float64
	hasText   bool // text is set, though it may be empty
	hasNumber bool
	isUsed    bool // the label is in collected.used
}

// reset removes all collected tags.
func (c *collected) reset() {
	for _, l := range c.used {
		c.values[l] = value{}
	}
	c.used = c.used[:0]
}

// use returns the value of a tag for setting it.
func (c *collected) use(l spantable.Label) *value {
	v := &c.values[l]
	if !v.isUsed {
		v.isUsed = true
		c.used = append(c.used, l)
	}
	return v
}

// setText sets the text of a tag, unless it has one that is not empty.
func (c *collected) setText(l spantable.Label, text spantable.Text) {
	v := c.use(l)
	if v.hasText = true; v.text.Len == 0 {
		v.text = text
	}
}

// replaceText sets the text of a tag, even if it has one.
func (c *collected) replaceText(l spantable.Label, text spantable.Text) {
	v := c.use(l)
	v.text, v.hasText = text, true
}

// makeText sets a text that the ingest derives, unless the tag already has a text, text is empty,
// or no rule asks for the tag.
func (c *collected) makeText(l spantable.Label, text spantable.Text) {
	if l != spantable.Other && !c.values[l].hasText && text.Len > 0 {
		c.setText(l, text)
	}
}

// setNumber sets the number of a tag, unless it has one or no rule asks for the tag.
func (c *collected) setNumber(l spantable.Label, n float64) {
	if l == spantable.Other {
		return
	}
	if v := c.use(l); !v.hasNumber {
		v.number, v.hasNumber = n, true
	}
}

// appendTexts appends a tag with the text of each collected label, even if the text is empty.
func (c *collected) appendTexts(dst []spantable.Tag) []spantable.Tag {
	for _, l := range c.used {
		text := spantable.TextBits(c.values[l].text)
		dst = append(dst, spantable.Tag{Label: l, Value: spantable.IsText, Bits: text})
	}
	return dst
}

// appendTo appends the collected tags to the table to, as the tags of s. The rule of each label
// decides between the text and the number.
func (c *collected) appendTo(to *spantable.Table, s *spantable.Span, ruleOf *[spantable.MaxLabels]numberRule) {
	s.First = uint32(len(to.Tags))
	for _, l := range c.used {
		v := &c.values[l]
		tag := spantable.Tag{Label: l, Value: spantable.IsText, Bits: spantable.TextBits(v.text)}
		if v.hasNumber && ruleOf[l].takesNumber(v) {
			tag.Value, tag.Bits = spantable.IsNumber, math.Float64bits(v.number)
		} else if v.text.Len == 0 || ruleOf[l] == numberAlone || ruleOf[l] == noTag {
			continue
		}
		to.Tags = append(to.Tags, tag)
	}
	s.Last = uint32(len(to.Tags))
	if len(to.Tags) > to.Limits.Tags {
		to.Fail(spantable.ErrTooMuch)
	}
}

// takesNumber reports whether the number of a tag counts instead of its text.
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
