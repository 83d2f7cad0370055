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
	tags collectedTags // tags of the span that is being built
	// Tags that the current resource and scope add to each of their spans; each label occurs once.
	resourceTags, scopeTags      []spantable.Tag
	resourceVersion, resourceEnv spantable.Text // properties of the current resource
}

// readResource converts the attributes of the current resource to Datadog tags and stores them in
// resourceTags, for all spans of the resource. If several attributes become the same tag, the first one
// that is not empty counts. readResource also sets resourceVersion and resourceEnv.
func (t *spanBuilder) readResource(attributes []spantable.Tag) {
	t.tags.reset()
	t.collectAttributes(attributes, formatNumbers) // into t.tags
	t.resourceTags = t.tags.appendTexts(t.resourceTags[:0])
	t.resourceVersion = t.normalizeTagValue(t.textOf(attrVersion))
	t.resourceEnv = t.normalizeTagValue(t.textOfEither(attrEnvironment, attrOldEnvironment))
}

// readScope converts the attributes of an instrumentation scope to Datadog tags and stores them in
// scopeTags, for all spans of the scope. If an attribute occurs several times, the last one counts. A
// list or a map is recorded as an error in the output.
func (t *spanBuilder) readScope(attributes []spantable.Tag) {
	t.tags.reset()
	for i := range attributes {
		attribute := &attributes[i]
		tagLabel := t.scopeTagOf[attribute.Label]
		if tagLabel == spantable.Other {
			continue // the tag does not affect the statistics
		}
		if attribute.Type == spantable.TypeNested {
			t.output.Fail(otlp.ErrUnparsable) // only the agent can convert a list or a map
			return
		}
		t.tags.replaceText(tagLabel, t.formatValue(attribute))
	}
	t.scopeTags = t.tags.appendTexts(t.scopeTags[:0])
}

// build fills dst with the Datadog span for the OTLP span src, which has the given tracestate. The caller
// must have called readResource and readScope for the resource and the scope of src.
func (t *spanBuilder) build(dst, src *spantable.Span, traceState []byte) {
	copyFields(dst, src)
	t.selectSpan(src)
	t.setNames(dst)
	t.tags.reset()
	// The order matters: a tag that already has a value keeps it, unless a tag of the scope replaces it.
	t.collectDerived(traceState)
	t.collectAttributes(t.request.TagsOf(src), keepNumbers)
	t.collectVersionAndEnv()
	t.collectResourceTags()
	t.replaceWithScopeTags(dst)
	t.tags.setDerivedText(t.labels.dbName, t.textOf(attrNamespace)) // the last source of db.name
	t.tags.appendTo(t.output, dst, &t.rules)
}

// copyFields copies the fields of src that OTLP and Datadog have in common to dst.
func copyFields(dst, src *spantable.Span) {
	dst.ID, dst.Parent = src.ID, src.Parent
	dst.Start, dst.Duration = src.Start, src.Duration
	dst.Name, dst.Kind = src.Name, src.Kind
	if src.Status == spantable.StatusError {
		dst.Status = spantable.StatusError
	}
}

// collectResourceTags adds the tags of the current resource to t.tags, except those that already have a text.
func (t *spanBuilder) collectResourceTags() {
	for i := range t.resourceTags {
		t.tags.setText(t.resourceTags[i].Label, t.resourceTags[i].Text())
	}
}

// replaceWithScopeTags adds the tags of the current scope to t.tags. They replace the texts of tags that t.tags
// already contains. If the scope has a tag for the span kind, this also becomes the kind of s.
func (t *spanBuilder) replaceWithScopeTags(s *spantable.Span) {
	for i := range t.scopeTags {
		l, text := t.scopeTags[i].Label, t.scopeTags[i].Text()
		t.tags.replaceText(l, text)
		if l == t.labels.kind {
			s.Kind = kindNamed(t.output.String(text))
		}
	}
}

// collectVersionAndEnv adds the version and the environment of the current span to t.tags, unless t.tags
// already contains them. It takes each from the attributes of the span, or otherwise from its resource.
func (t *spanBuilder) collectVersionAndEnv() {
	version := t.resourceVersion
	hasVersion := t.spanAttrs.Set.Has(attrVersion)
	if hasVersion {
		version = t.normalizeTagValue(t.textOf(attrVersion))
	}
	env := t.resourceEnv
	hasEnv := t.spanAttrs.Set.Has(attrEnvironment) || t.spanAttrs.Set.Has(attrOldEnvironment)
	if hasEnv {
		env = t.normalizeTagValue(t.textOfEither(attrEnvironment, attrOldEnvironment))
	}
	t.tags.setDerivedText(t.labels.version, version)
	t.tags.setDerivedText(t.labels.env, env)
}

// numberFormat determines whether an attribute with a number becomes a tag with a number or with a text.
type numberFormat bool

const (
	keepNumbers   numberFormat = false // for the attributes of a span
	formatNumbers numberFormat = true  // for the attributes of a resource
)

// collectAttributes converts attributes to Datadog tags and adds them to t.tags. It skips tags that do
// not affect the statistics. A list or a map is recorded as an error in the output.
func (t *spanBuilder) collectAttributes(attributes []spantable.Tag, numbers numberFormat) {
	for i := range attributes {
		attribute := &attributes[i]
		tagLabel := t.tagOf[attribute.Label]
		if tagLabel == spantable.Other {
			continue // the tag does not affect the statistics
		}
		if attribute.Type == spantable.TypeNested {
			t.output.Fail(otlp.ErrUnparsable) // only the agent can convert a list or a map
			return
		}
		if isNumber(attribute) && numbers == keepNumbers {
			n, _ := attribute.Float()
			t.tags.setNumber(tagLabel, n)
		} else {
			t.tags.setText(tagLabel, t.formatValue(attribute))
		}
	}
}

// isNumber reports whether the value of an attribute is a number or an integer.
func isNumber(attribute *spantable.Tag) bool {
	return attribute.Type == spantable.TypeNumber || attribute.Type == spantable.TypeInteger
}

// collectDerived adds the tags of the current span that the Datadog agent does not simply copy from an
// attribute: the HTTP status, the gRPC status, _dd.measured and the sample rate. traceState is the
// tracestate of the span.
func (t *spanBuilder) collectDerived(traceState []byte) {
	if code, ok := t.httpCode(); ok && code >= 0 {
		t.tags.setNumber(t.labels.httpStatus, float64(code))
	}
	t.tags.setDerivedText(t.labels.grpcStatus, t.grpcCode())
	measured, _ := t.integerOf(attrMeasured)
	if measured == 1 {
		t.tags.setNumber(t.labels.measured, 1)
	}
	if rate, ok := t.sampleRate(traceState); ok {
		t.tags.setNumber(t.labels.rate, rate)
	}
}

// sampleRate returns the rate at which the current span was sampled. It reads the attribute
// _sample_rate, or otherwise the tracestate of the span. ok is false if neither contains a rate.
func (t *spanBuilder) sampleRate(traceState []byte) (rate float64, ok bool) {
	attribute := t.spanAttrs.Tag(&t.request.Table, attrSampleRate)
	if attribute != nil && isNumber(attribute) {
		return attribute.Float()
	}
	if len(traceState) == 0 {
		return 0, false
	}
	parsed := tracestate.Read(traceState)
	return parsed.Rate()
}

// httpCode returns the HTTP status of the current span: the value of http.status_code, or otherwise of
// http.response.status_code. The value can be an integer or a text such as "200". ok is false if
// neither attribute has such a value.
func (t *spanBuilder) httpCode() (code int64, ok bool) {
	for _, l := range [...]spantable.Label{attrHTTPStatus, attrNewHTTPStatus} {
		if !t.spanOrResource.Has(l) {
			continue
		}
		if integer, isInteger := t.integerOf(l); isInteger {
			return integer, true
		}
		text := t.output.String(t.textOf(l))
		if parsed, isStatus := rules.ParseInteger(text); isStatus {
			return parsed, true
		}
	}
	return 0, false
}

// grpcStatusAttributes contains the attributes of the gRPC status, in the order in which the agent reads them.
var grpcStatusAttributes = [...]spantable.Label{
	attrGRPCStatus, attrGRPCStatus + 1, attrGRPCStatus + 2, attrGRPCStatus + 3, attrRPCStatus,
}

// grpcCode returns the gRPC status of the current span as text: an integer in decimal digits, or a text
// as it was sent. It returns an empty text if the span has no gRPC status.
func (t *spanBuilder) grpcCode() spantable.Text {
	for _, l := range grpcStatusAttributes {
		if !t.spanOrResource.Has(l) {
			continue
		}
		isOfOtherSystem := l == attrRPCStatus && !t.callsGRPC()
		if isOfOtherSystem {
			continue
		}
		if text := t.textOf(l); text.Len > 0 {
			return text
		}
		if n, ok := t.integerOf(l); ok {
			return t.formatInteger(n)
		}
	}
	return spantable.Text{}
}

// callsGRPC reports whether the RPC system of the current span is gRPC.
func (t *spanBuilder) callsGRPC() bool {
	name := t.output.String(t.textOf(attrRPCSystemName))
	deprecatedName := t.output.String(t.textOf(attrRPCSystem))
	return rules.CallsGRPC(name, deprecatedName)
}

// agentKinds contains the span kinds whose names the Datadog agent knows, except for KindInternal.
var agentKinds = [...]spantable.Kind{
	spantable.KindServer, spantable.KindClient, spantable.KindProducer, spantable.KindConsumer,
	spantable.KindUnspecified,
}

// kindNamed returns the span kind with the given name, such as "server". Like the Datadog agent, it
// returns KindInternal for all unknown names.
func kindNamed(name string) spantable.Kind {
	for _, k := range agentKinds {
		if name == k.String() {
			return k
		}
	}
	return spantable.KindInternal
}

// collectedTags is the tags of one span that rules ask for, by label. A tag may have both a text and a
// number.
type collectedTags struct {
	values [spantable.MaxLabels]value
	used   []spantable.Label // labels that have a value
}

// value is the value of a tag.
type value struct {
	text      spantable.Text
	number    float64
	hasText   bool // text is set, though it may be empty
	hasNumber bool
	isUsed    bool // the label is in collectedTags.used
}

// reset removes all collected tags.
func (c *collectedTags) reset() {
	for _, l := range c.used {
		c.values[l] = value{}
	}
	c.used = c.used[:0]
}

// valueOf returns a pointer to the value of a tag, so that the caller can set it.
func (c *collectedTags) valueOf(l spantable.Label) *value {
	v := &c.values[l]
	if !v.isUsed {
		v.isUsed = true
		c.used = append(c.used, l)
	}
	return v
}

// setText sets the text of a tag, unless the tag already has a text that is not empty.
func (c *collectedTags) setText(l spantable.Label, text spantable.Text) {
	v := c.valueOf(l)
	v.hasText = true
	if v.text.Len == 0 {
		v.text = text
	}
}

// replaceText sets the text of a tag, and replaces the text that it may already have.
func (c *collectedTags) replaceText(l spantable.Label, text spantable.Text) {
	v := c.valueOf(l)
	v.text, v.hasText = text, true
}

// setDerivedText sets the text of the tag with label l, unless the tag already has a text. It does
// nothing if text is empty, or if l is Other, the label of all tags that do not affect the statistics.
func (c *collectedTags) setDerivedText(l spantable.Label, text spantable.Text) {
	if l == spantable.Other || text.Len == 0 {
		return
	}
	if !c.values[l].hasText {
		c.setText(l, text)
	}
}

// setNumber sets the numeric value of the tag that l identifies, unless it already has one. It does
// nothing if l is Other, the label of all tags that do not affect the statistics.
func (c *collectedTags) setNumber(l spantable.Label, n float64) {
	if l == spantable.Other {
		return
	}
	v := c.valueOf(l)
	if !v.hasNumber {
		v.number = n
		v.hasNumber = true
	}
}

// appendTexts appends a tag with the text of each collected tag. The text may be empty.
func (c *collectedTags) appendTexts(dst []spantable.Tag) []spantable.Tag {
	for _, l := range c.used {
		text := spantable.TextBits(c.values[l].text)
		dst = append(dst, spantable.Tag{Label: l, Type: spantable.TypeText, Bits: text})
	}
	return dst
}

// appendTo appends the collected tags to output as the tags of s. If a tag has both a number and a text, the
// element of numberRules for its label decides which one is appended. A tag without a value is left out.
// appendTo records an error in output if it has too many tags.
func (c *collectedTags) appendTo(output *spantable.Table, s *spantable.Span, numberRules *[spantable.MaxLabels]numberRule) {
	s.TagStart = uint32(len(output.Tags))
	for _, l := range c.used {
		v := &c.values[l]
		rule := numberRules[l]
		tag := spantable.Tag{Label: l}
		switch {
		case v.hasNumber && rule.prefersNumber(v):
			tag.Type = spantable.TypeNumber
			tag.Bits = math.Float64bits(v.number)
		case v.text.Len > 0 && rule.acceptsText():
			tag.Type = spantable.TypeText
			tag.Bits = spantable.TextBits(v.text)
		default:
			continue
		}
		output.Tags = append(output.Tags, tag)
	}
	s.TagEnd = uint32(len(output.Tags))
	if len(output.Tags) > output.Limits.Tags {
		output.Fail(spantable.ErrTooMuch)
	}
}

// acceptsText reports whether the text of a tag counts if its number does not.
func (r numberRule) acceptsText() bool { return r != numberAlone && r != noTag }

// prefersNumber reports whether the number of a tag counts instead of its text. v must have a number.
func (r numberRule) prefersNumber(v *value) bool {
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
