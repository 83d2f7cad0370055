package datadog

import (
	"math/bits"
	"slices"
	"strconv"

	agent "github.com/spanstatsd/spanstatsd/client/rules"
	decode "github.com/spanstatsd/spanstatsd/internal/decode/datadog"
	"github.com/spanstatsd/spanstatsd/internal/rules"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// labeler makes the fingerprint and the key of the current span.
type labeler struct {
	tags
	policy      *Policy
	ruleLabels  *rulebookLabels // labels of the rulebook
	services    serviceNames
	source      source
	rulebookID  rulebookID
	fingerprint rules.Fingerprint
	key         span.Key // last key, reused for the next
}

// source is where the table of spans comes from.
type source uint8

const (
	sourceV04  source = iota // a body of v0.4 to v0.7: the span kind and the trace's origin are tags
	sourceV1                 // a body of v1.0: the span kind and the trace's origin are fields
	sourceOTLP               // an OTLP request, translated like the agent's OTLP ingest
)

// traceRoot returns whether s is the root of its trace, which is a span without a parent. For tracers whose
// statistics do not distinguish roots from other spans, it returns span.TraceRootNotSet.
func (r *labeler) traceRoot(s *spantable.Span) span.TraceRoot {
	switch {
	case r.rulebook.omitsTraceRoot:
		return span.TraceRootNotSet
	case s.Parent == 0:
		return span.TraceRootTrue
	}
	return span.TraceRootFalse
}

// kindName returns the kind of the current span as a label, such as "server". If spans are counted by the Datadog
// agent's rules, this is always a valid kind. If they are counted by a tracer's rules, it is the text that the tracer
// sent, or "" if it sent none.
func (r *labeler) kindName(s *spantable.Span) string {
	if r.rulebook.followsAgent {
		return s.Kind.String()
	}
	hasKindField := r.source == sourceV1 // spans of other formats have a tag instead
	if !hasKindField {
		return r.tagText(decode.LabelKind)
	}
	if s.Kind == spantable.KindUnknown {
		return ""
	}
	return s.Kind.String()
}

// endpoint returns the HTTP endpoint of the current span, such as /users/{id}, or "" if the span has
// none. The first endpoint tag that is not empty counts. By the rules of some tracers, the first one of
// the span counts even if it is empty.
func (r *labeler) endpoint() string {
	for _, l := range r.ruleLabels.endpoints {
		if r.findTag(l) == nil {
			continue
		}
		endpoint := r.tagText(l)
		if endpoint != "" || r.rulebook.acceptsEmptyEndpoint {
			return endpoint
		}
	}
	return ""
}

// setKindAndSynthetic sets the kind of s, the current span, and whether it is part of a synthetic test. It
// reads them from tags. In the format v1.0, these are fields instead, which the decoder has already read.
func (r *labeler) setKindAndSynthetic(s *spantable.Span) {
	if r.source == sourceV1 {
		return
	}
	s.Kind = spantable.KindUnknown
	t := r.findTag(decode.LabelKind)
	if t != nil && t.Type == spantable.TypeText {
		s.Kind = r.rulebook.kindOf(r.table.Bytes(t.Text()))
	}
	s.IsSynthetic = r.rulebook.isSynthetic(r.tagText(decode.LabelOrigin))
}

// kindOf returns the span kind with the given name, such as "server". It returns KindUnknown for an
// empty name, and KindOther for a name that is not a span kind. By the rules of some tracers, the name
// can be in upper case.
func (b *rulebook) kindOf(name []byte) spantable.Kind {
	if len(name) == 0 {
		return spantable.KindUnknown
	}
	for k := spantable.KindInternal; k < spantable.KindOther; k++ {
		if string(name) == k.String() {
			return k
		}
		if b.ignoresKindCase && equalFoldASCII(name, k.String()) {
			return k
		}
	}
	return spantable.KindOther
}

// equalFoldASCII reports whether text equals lower, ignoring the case of ASCII letters. lower must
// not contain upper-case letters.
func equalFoldASCII(text []byte, lower string) bool {
	if len(text) != len(lower) {
		return false
	}
	for i, c := range text {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// mainService returns the service that is configured for the process that sent a trace, or "" if it is unknown. A tracer
// sends it in the tag _dd.base_service of a span, unless it equals the service of the span. root must be the root of the
// trace and the current span.
func (r *labeler) mainService(root *spantable.Span) string {
	if r.rulebook.followsAgent {
		return r.normalizedBaseService() // if there is no tag, the agent does not use the service of the span
	}
	if r.rulebook.omitsMainService {
		return "" // the statistics of the tracer do not contain the service
	}
	if r.findTag(labelBaseService) != nil {
		return r.tagText(labelBaseService)
	}
	return r.validText(root.Service)
}

// normalizedBaseService returns the value of the tag _dd.base_service of the current span, as the Datadog agent
// normalizes it. It returns "" if the span has no such tag, or if its value is not a text.
func (r *labeler) normalizedBaseService() string {
	if t := r.findTag(labelBaseService); t != nil && t.Type == spantable.TypeText {
		return r.services.normalizePeer(r.validBytes(t.Text()))
	}
	return ""
}

// matchesIgnoreRule reports whether an ignore rule matches a tag of the current span.
func (r *labeler) matchesIgnoreRule() bool {
	return slices.ContainsFunc(r.policy.labels.ignoreLabels, func(l label) bool {
		t := r.findTag(l)
		if t == nil || t.Type == spantable.TypeNested {
			return false
		}
		return r.policy.ignoreRules.MatchesAttribute(r.policy.labels.names[l], r.formatTag(l))
	})
}

// makeFingerprint returns the fingerprint of s, the current span: bytes that are equal only for spans
// with equal keys, the labels under which they are counted. It returns nil if there would be too many
// bytes, or if a tag for the key is a list or a map, which only the Datadog agent can format.
func (r *labeler) makeFingerprint(s *spantable.Span) []byte {
	f, t := &r.fingerprint, r.table
	f.Reset(r.policy.id, r.packProperties(s))
	f.AppendText(t.String(s.Service))
	f.AppendText(t.String(s.Name))
	f.AppendText(t.String(s.Resource))
	f.AppendText(t.String(s.Type))
	f.AppendText(r.services.lang) // affects the name of a service without a name
	hasNested := r.appendKeyTags(s.Kind)
	t.AddReadBytes(f.Size()) // fails the table if its spans refer to too much text
	if hasNested {
		return nil
	}
	return f.Bytes() // nil if there are too many
}

// packProperties returns the properties of s that affect its key, other than texts and tags, in one number.
func (r *labeler) packProperties(s *spantable.Span) uint32 {
	const isRoot, isSynthetic = 1 << 24, 1 << 25
	properties := uint32(s.Kind) | uint32(r.source)<<8 | uint32(r.rulebookID)<<16
	if s.Parent == 0 {
		properties |= isRoot
	}
	if s.IsSynthetic {
		properties |= isSynthetic
	}
	return properties
}

// appendKeyTags appends those tags of the current span to the fingerprint that can affect the key of a span of
// the given kind, in the order of their labels. hasNested is true if one of them is a list or a map.
func (r *labeler) appendKeyTags(kind spantable.Kind) (hasNested bool) {
	keyLabels := &r.ruleLabels.keyLabels[kind]
	const labelsPerWord = 64 // a set of labels is an array of words with one bit per label
	for word := range keyLabels {
		remaining := keyLabels[word] & r.Selected.Set[word] // only labels of tags that the span has
		for remaining != 0 {
			lowestBit := bits.TrailingZeros64(remaining)
			remaining &^= 1 << lowestBit
			tagLabel := label(word*labelsPerWord + lowestBit)
			tag := &r.table.Tags[r.Selected.At(tagLabel)]
			if tag.Type == spantable.TypeNested {
				hasNested = true
			}
			r.fingerprint.AppendTag(r.table, tag)
		}
	}
	return hasNested
}

// makeKey returns the key of s, the current span. The key is valid until the next call. If a label is a list or a map,
// which only the Datadog agent can format, makeKey records an error in the table.
func (r *labeler) makeKey(s *spantable.Span) *span.Key {
	k := &r.key
	peerTags := k.PeerTags[:0] // their memory is reused
	additionalTags := k.AdditionalTags[:0]
	*k = span.Key{
		Service:       r.services.normalize(r.validBytes(s.Service)),
		Operation:     r.validText(s.Name),
		Resource:      r.validText(s.Resource),
		Type:          r.validText(s.Type),
		Kind:          r.kindName(s),
		TraceRoot:     r.traceRoot(s),
		HTTPStatus:    r.httpStatus(),
		GRPCStatus:    r.grpcStatus(s),
		ServiceSource: r.formatTag(labelServiceSource),
		Synthetics:    s.IsSynthetic,
	}
	k.PeerTags = r.appendPeerTags(peerTags, s.Kind)
	k.AdditionalTags = r.appendAdditionalTags(additionalTags, s.Kind)
	hasHTTPLabels := r.ruleLabels.endpoints != nil
	if hasHTTPLabels {
		k.HTTPMethod = r.tagText(labelHTTPMethod)
		k.HTTPEndpoint = r.endpoint()
	}
	return k
}

// appendPeerTags appends the peer tags of the current span, which identify the service that it calls,
// to dst, each as "name:value". The kind of the span decides whether it has all peer tags, only
// _dd.base_service, or none.
func (r *labeler) appendPeerTags(dst []string, kind spantable.Kind) []string {
	peers := &r.rulebook.peers
	switch {
	case peers.kindsWithAllTags.Has(kind):
		for _, l := range r.policy.labels.peers {
			dst = r.appendPeerTag(dst, l, kind)
		}
	case peers.kindsWithBaseTag.Has(kind) && r.hasBasePeerTag():
		dst = r.appendPeerTag(dst, labelBaseService, kind)
	}
	return dst
}

// hasBasePeerTag reports whether _dd.base_service is a peer tag of the current span. The Datadog agent and some
// tracers require that the agent's configuration contains at least one peer tag. The agent also requires that
// the value of _dd.base_service is not empty.
func (r *labeler) hasBasePeerTag() bool {
	hasConfiguredTag := len(r.policy.labels.peers) > 0
	isAllowed := hasConfiguredTag || r.rulebook.peers.alwaysHasBase
	if !isAllowed {
		return false
	}
	if r.rulebook.followsAgent {
		return r.normalizedBaseService() != ""
	}
	return true
}

// appendPeerTag appends the tag of the current span with label l to dst, as "name:value", or nothing if
// the value is missing or empty. Unless the rules keep them, IP addresses in the value are replaced.
// kind is the kind of the span.
func (r *labeler) appendPeerTag(dst []string, l label, kind spantable.Kind) []string {
	value := r.peerValue(l, kind)
	if value == "" {
		return dst
	}
	if !r.rulebook.peers.keepsAddresses {
		value = agent.QuantizePeer(value)
	}
	return append(dst, r.joinTag(r.policy.labels.names[l], value))
}

// peerValue returns the value of a peer tag of the current span, or "" if it is missing. Like the Datadog agent, it
// normalizes the name of a service. kind is the kind of the span.
func (r *labeler) peerValue(l label, kind spantable.Kind) string {
	t := r.findTag(l)
	isText := t != nil && t.Type == spantable.TypeText
	isServiceName := isText && (l == labelPeerService || l == labelBaseService)
	if isServiceName && r.rulebook.followsAgent {
		return r.services.normalizePeer(r.validBytes(t.Text()))
	}
	sentAs := r.resolveAlias(l, kind) // the tracer may send the tag under another name
	return r.labelValue(sentAs)
}

// appendAdditionalTags appends the tags of the current span that the operator has configured as labels
// to dst, each as "name:value". It omits tags that are missing or empty. kind is the kind of the span.
func (r *labeler) appendAdditionalTags(dst []string, kind spantable.Kind) []string {
	for _, l := range r.ruleLabels.additional {
		sentAs := r.resolveAlias(l, kind) // the tracer may send the tag under another name
		value := r.labelValue(sentAs)
		if value != "" {
			dst = append(dst, r.joinTag(r.policy.labels.names[l], value))
		}
	}
	return dst
}

// labelValue returns the value of a peer tag or additional tag of the current span as text. It returns "" if the span
// does not have the tag, or if the value is not a text and the tracer's rules accept only texts.
func (r *labeler) labelValue(l label) string {
	t := r.findTag(l)
	if t == nil {
		return ""
	}
	isText := t.Type == spantable.TypeText
	if !isText && r.rulebook.peers.ignoresNumbers {
		return ""
	}
	return r.formatTag(l)
}

// resolveAlias returns the label of the tag that contains the value for l in the current span. This is l,
// unless the span does not have the tag l, and the tracer sends another tag instead in spans of the given
// kind, such as db.type for db.system.
func (r *labeler) resolveAlias(l label, kind spantable.Kind) label {
	if r.Set.Has(l) {
		return l
	}
	for _, a := range r.ruleLabels.aliases {
		if a.name == l && a.kinds.Has(kind) {
			return a.sentAs
		}
	}
	return l
}

// httpStatus returns the HTTP status of the current span, or 0 if the span has none. It prefers the tag
// http.status_code to http.response.status_code.
func (r *labeler) httpStatus() uint32 {
	if code, ok := r.datadogHTTPStatus(); ok {
		return agent.StatusOf(code)
	}
	if code, ok := r.otelHTTPStatus(); ok {
		return agent.StatusOf(code)
	}
	return 0
}

// datadogHTTPStatus returns the HTTP status in the tag http.status_code of the current span. ok is false if the span does
// not have the tag, if the value is not an integer, or if it is not a valid status and requiresValidStatus is true.
func (r *labeler) datadogHTTPStatus() (code int64, ok bool) {
	t := r.findTag(labelHTTPStatus)
	if t == nil {
		return 0, false
	}
	if r.requiresValidStatus(t) && !agent.ValidHTTPStatus(r.formatTag(labelHTTPStatus)) {
		return 0, false
	}
	return r.parseStatus(t)
}

// otelHTTPStatus returns the HTTP status in the tag http.response.status_code of the current span. ok is
// false if the span does not have the tag, if the value is not a status, or if the tracer does not read
// the tag.
func (r *labeler) otelHTTPStatus() (code int64, ok bool) {
	t := r.findTag(labelOTelHTTPStatus)
	if t == nil || !r.rulebook.status.readsOTelTag {
		return 0, false
	}
	return r.parseStatus(t)
}

// requiresValidStatus reports whether the HTTP status in the tag t counts only if it is from 100 to 599. The
// Datadog agent requires this, except for a number in an OTLP request.
func (r *labeler) requiresValidStatus(t *spantable.Tag) bool {
	if !r.rulebook.followsAgent {
		return false
	}
	isOTLPNumber := r.source == sourceOTLP && t.Type != spantable.TypeText
	return !isOTLPNumber
}

// parseStatus returns the value of a status tag, which can be an integer or a text such as "200" or "200.0".
// ok is false for any other value. Some tracers accept only digits in a text.
func (r *labeler) parseStatus(t *spantable.Tag) (code int64, ok bool) {
	if t.Type != spantable.TypeText {
		return integerValue(t)
	}
	text := r.validText(t.Text())
	if r.rulebook.status.acceptsOnlyDigits {
		code, err := strconv.ParseUint(text, 10, 32)
		return int64(code), err == nil
	}
	return agent.ParseInteger(text)
}

// grpcStatus returns the gRPC status of s, the current span, as text, or "" if it has none. The rules of the
// tracer decide which tags contain the status, and in which form.
func (r *labeler) grpcStatus(s *spantable.Span) string {
	rule := &r.rulebook.status
	switch {
	case rule.keepsRawGRPC:
		return r.rawGRPCStatus(s)
	case rule.prefersText:
		if code := r.textGRPCStatus(); code != "" {
			return code
		}
		return r.integerGRPCStatus()
	}
	return r.firstGRPCStatus()
}

// rawGRPCStatus returns the gRPC status of s, the current span, as it was sent. It returns "" if the type of
// s is not "rpc".
func (r *labeler) rawGRPCStatus(s *spantable.Span) string {
	if r.table.String(s.Type) != "rpc" {
		return ""
	}
	return r.formatTag(r.rulebook.status.grpc[0])
}

// textGRPCStatus returns the first valid gRPC status among the text tags of the current span, in decimal
// digits, or "" if there is none.
func (r *labeler) textGRPCStatus() string {
	for _, l := range r.rulebook.status.grpc {
		if code := agent.ParseGRPCStatus(r.tagText(l)); code != "" {
			return code
		}
	}
	return ""
}

// integerGRPCStatus returns the first gRPC status of the current span that is an integer, in decimal digits. It returns
// "" if there is none, or if the integer is not a gRPC status.
func (r *labeler) integerGRPCStatus() string {
	for _, l := range r.rulebook.status.grpc {
		t := r.grpcStatusTag(l)
		if t == nil {
			continue
		}
		if code, isInteger := integerValue(t); isInteger {
			return agent.ParseGRPCStatus(r.formatInteger(code))
		}
	}
	return ""
}

// firstGRPCStatus returns the gRPC status of the current span in decimal digits. It reads only the first status tag whose
// value is an integer or a nonempty text. It returns "" if there is none, or if the value is not a gRPC status.
func (r *labeler) firstGRPCStatus() string {
	for _, l := range r.rulebook.status.grpc {
		t := r.grpcStatusTag(l)
		if t == nil {
			continue
		}
		hasText := t.Type == spantable.TypeText && t.Text().Len > 0
		if hasText {
			return agent.ParseGRPCStatus(r.validText(t.Text()))
		}
		if code, isInteger := integerValue(t); isInteger {
			return agent.ParseGRPCStatus(r.formatInteger(code))
		}
	}
	return ""
}

// grpcStatusTag returns the tag l of the current span, if it contains the status of a gRPC call, and otherwise nil.
func (r *labeler) grpcStatusTag(l label) *spantable.Tag {
	t := r.findTag(l)
	if t == nil {
		return nil
	}
	if l == labelRPCResponseStatus && !r.readsRPCResponseStatus() {
		return nil
	}
	return t
}

// readsRPCResponseStatus reports whether rpc.response.status_code is a gRPC status of the current span. Most tracers
// require another tag that says that the span is a gRPC call, because other RPC systems use the same status tag.
func (r *labeler) readsRPCResponseStatus() bool {
	if r.rulebook.status.ignoresRPCSystem {
		return true
	}
	return agent.CallsGRPC(r.tagText(labelRPCSystemName), r.tagText(labelRPCSystem))
}
