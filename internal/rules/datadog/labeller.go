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

// labeller makes the fingerprint and the key of the current span.
type labeller struct {
	tags
	policy      *Policy
	bookLabels  *rulebookLabels // labels of the rulebook
	services    serviceNames
	source      source
	rulebookID  rulebookID
	fingerprint rules.Fingerprint
	key         span.Key // last key, reused for the next
}

// source is where the table of spans comes from.
type source uint8

const (
	fromTags   source = iota // a body of v0.4 to v0.7: the span kind and the trace's origin are tags
	fromFields               // a body of v1.0: the span kind and the trace's origin are fields
	fromOTLP                 // an OTLP request, translated like the agent's OTLP ingest
)

// traceRoot returns whether the span is the root of its trace. If the keys of the tracer do not
// contain this, it returns span.TraceRootNotSet.
func (r *labeller) traceRoot(s *spantable.Span) span.TraceRoot {
	switch {
	case r.rulebook.omitsTraceRoot:
		return span.TraceRootNotSet
	case s.Parent == 0:
		return span.TraceRootTrue
	}
	return span.TraceRootFalse
}

// kindName returns the span kind for the key. By the agent's rules, an unknown kind has become
// internal. By a tracer's rules, it is the text that the tracer sent, or an empty string.
func (r *labeller) kindName(s *spantable.Span) string {
	switch {
	case r.rulebook.followsAgent:
		return s.Kind.String()
	case r.source != fromFields:
		return r.textValue(decode.LabelKind)
	case s.Kind == spantable.KindUnknown:
		return ""
	}
	return s.Kind.String()
}

// endpoint returns the HTTP endpoint of the current span by a tracer's rules. It reads the tags that
// can contain the endpoint in order of preference, and returns the first value that is not empty.
// By some rules, an empty value counts too.
func (r *labeller) endpoint() string {
	for _, l := range r.bookLabels.endpoints {
		endpoint := r.textValue(l)
		acceptsEmpty := r.rulebook.emptyEndpoint && r.findTag(l) != nil
		if endpoint != "" || acceptsEmpty {
			return endpoint
		}
	}
	return ""
}

// readTracerTags sets the kind of s, the current span, and whether it is synthetic, by a tracer's
// rules. It reads them from tags. In bodies of v1.0 they are fields, which the decoder has read.
func (r *labeller) readTracerTags(s *spantable.Span) {
	if r.source == fromFields {
		return
	}
	s.Kind = spantable.KindUnknown
	t := r.findTag(decode.LabelKind)
	if t != nil && t.Value == spantable.IsText {
		s.Kind = r.rulebook.kindOf(r.table.Bytes(t.Text()))
	}
	s.IsSynthetic = r.rulebook.isSynthetic(r.textValue(decode.LabelOrigin))
}

// kindOf returns the span kind with the given name. It returns KindUnknown for an empty name, and
// KindOther for any other name that is not a span kind.
func (b *rulebook) kindOf(name []byte) spantable.Kind {
	if len(name) == 0 {
		return spantable.KindUnknown
	}
	for k := spantable.KindInternal; k < spantable.KindOther; k++ {
		if string(name) == k.String() {
			return k
		}
		if b.foldsKind && equalFoldASCII(name, k.String()) {
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

// mainService returns the service of the process that created a trace, which identifies its
// statistics payload. root is the root span of the trace and the current span. The result is empty
// if it is unknown, or if the payloads of the tracer do not contain it.
func (r *labeller) mainService(root *spantable.Span) string {
	switch {
	case r.rulebook.followsAgent:
		return r.baseService()
	case r.rulebook.noMainService:
		return ""
	case r.findTag(labelBaseService) != nil:
		return r.textValue(labelBaseService)
	}
	return r.viewText(root.Service) // a span of the main service has no base service tag
}

// baseService returns the base service of the current span, which is the configured service of its
// process. It returns an empty string if the span has no such tag.
func (r *labeller) baseService() string {
	if t := r.findTag(labelBaseService); t != nil && t.Value == spantable.IsText {
		return r.services.normalizePeer(r.validText(t.Text()))
	}
	return ""
}

// matchesIgnoreRule reports whether an ignore rule matches a tag of the current span.
func (r *labeller) matchesIgnoreRule() bool {
	return slices.ContainsFunc(r.policy.labels.ignoreLabels, func(l label) bool {
		t := r.findTag(l)
		if t == nil || t.Value == spantable.IsNested {
			return false
		}
		return r.policy.ignoreRules.MatchesAttribute(r.policy.labels.names[l], r.formatValue(l))
	})
}

// makeFingerprint returns the fingerprint of the current span: a copy of all parts of the span that
// affect its key. It returns nil if they are too long, or if one of them is a list or a map, from
// which only the agent can make a key.
func (r *labeller) makeFingerprint(s *spantable.Span) []byte {
	const isRoot, isSynthetic = 1 << 24, 1 << 25
	facts := uint32(s.Kind) | uint32(r.source)<<8 | uint32(r.rulebookID)<<16
	if s.Parent == 0 {
		facts |= isRoot
	}
	if s.IsSynthetic {
		facts |= isSynthetic
	}
	f, t := &r.fingerprint, r.table
	f.Reset(r.policy.id, facts)
	f.AppendText(t.String(s.Service))
	f.AppendText(t.String(s.Name))
	f.AppendText(t.String(s.Resource))
	f.AppendText(t.String(s.Type))
	f.AppendText(r.services.lang) // affects the name of a service without a name
	hasNested := false
	keyLabels := &r.bookLabels.keyLabels[s.Kind]
	for i := range keyLabels {
		// Iterate over the bits of a word of the set, from the lowest to the highest.
		for word := r.Set[i] & keyLabels[i]; word != 0; word &= word - 1 {
			l := label(64*i + bits.TrailingZeros64(word))
			tag := &t.Tags[r.At(l)]
			hasNested = hasNested || tag.Value == spantable.IsNested
			f.AppendTag(t, tag)
		}
	}
	t.Charge(f.Size())
	if hasNested {
		return nil
	}
	return f.Bytes()
}

// makeKey returns the key of s, the current span. The key is valid until the next call.
func (r *labeller) makeKey(s *spantable.Span) *span.Key {
	k := &r.key
	peers, additional := k.PeerTags[:0], k.AdditionalTags[:0]
	*k = span.Key{
		Service: r.services.normalize(r.validText(s.Service)), Operation: r.viewText(s.Name),
		Resource: r.viewText(s.Resource), Type: r.viewText(s.Type),
		Kind: r.kindName(s), TraceRoot: r.traceRoot(s),
		HTTPStatus: r.httpStatus(), GRPCStatus: r.grpcStatus(s),
		ServiceSource: r.formatValue(labelServiceSource), Synthetics: s.IsSynthetic,
	}
	k.PeerTags = r.appendPeerTags(peers, s.Kind)
	k.AdditionalTags = r.appendAdditionalTags(additional, s.Kind)
	if r.bookLabels.endpoints != nil {
		k.HTTPMethod, k.HTTPEndpoint = r.textValue(labelHTTPMethod), r.endpoint()
	}
	return k
}

// appendPeerTags appends the peer tags of a span of the given kind, which is the current span. Spans
// of some kinds have all peer tags, and spans of other kinds have only the base service.
func (r *labeller) appendPeerTags(dst []string, kind spantable.Kind) []string {
	peers := &r.rulebook.peers
	if peers.kinds.Has(kind) {
		for _, l := range r.policy.labels.peers {
			dst = r.appendPeerTag(dst, l, kind)
		}
		return dst
	}
	hasPeerTags := peers.baseAlways || len(r.policy.labels.peers) > 0
	if !peers.base.Has(kind) || !hasPeerTags {
		return dst
	}
	if r.rulebook.followsAgent && r.baseService() == "" {
		return dst
	}
	return r.appendPeerTag(dst, labelBaseService, kind)
}

// appendPeerTag appends the peer tag with label l as name:value. It appends nothing if the current
// span, which has the given kind, does not have the tag.
func (r *labeller) appendPeerTag(dst []string, l label, kind spantable.Kind) []string {
	source := r.resolveAlias(l, kind)
	t := r.findTag(source)
	if t == nil || t.Value != spantable.IsText && r.rulebook.peers.textOnly {
		return dst
	}
	value := r.formatValue(source)
	isServiceName := l == labelPeerService || l == labelBaseService
	if r.rulebook.followsAgent && isServiceName && t.Value == spantable.IsText {
		value = r.services.normalizePeer(r.validText(t.Text()))
	}
	if value == "" {
		return dst
	}
	if !r.rulebook.peers.raw {
		value = agent.QuantizePeer(value)
	}
	return append(dst, r.joinTag(r.policy.labels.names[l], value))
}

// appendAdditionalTags appends the tags that the operator has configured as labels, as name:value. It
// skips those that the current span, which has the given kind, does not have.
func (r *labeller) appendAdditionalTags(dst []string, kind spantable.Kind) []string {
	for _, l := range r.bookLabels.additional {
		source := r.resolveAlias(l, kind)
		t := r.findTag(source)
		if t == nil || t.Value != spantable.IsText && r.rulebook.peers.textOnly {
			continue
		}
		if value := r.formatValue(source); value != "" {
			dst = append(dst, r.joinTag(r.policy.labels.names[l], value))
		}
	}
	return dst
}

// resolveAlias returns the label of the tag that contains the value of the tag l. Some tracers send
// a tag under another name on spans of some kinds, for example db.type instead of db.system. If the
// current span has the tag l, the result is l.
func (r *labeller) resolveAlias(l label, kind spantable.Kind) label {
	if r.Set.Has(l) {
		return l
	}
	for _, a := range r.bookLabels.aliases {
		if a.name == l && a.kinds.Has(kind) {
			return a.sentAs
		}
	}
	return l
}

// httpStatus returns the HTTP status of the current span, or 0 if it has none. It reads Datadog's
// tag first, and then OpenTelemetry's if the rules include it.
func (r *labeller) httpStatus() uint32 {
	t := r.findTag(labelHTTPStatus)
	if t != nil && (!r.validatesStatus(t) || agent.ValidHTTPStatus(r.formatValue(labelHTTPStatus))) {
		if code, ok := r.statusCode(t); ok {
			return agent.StatusOf(code)
		}
	}
	t = r.findTag(labelOTelHTTPStatus)
	if t != nil && r.rulebook.status.otel {
		if code, ok := r.statusCode(t); ok {
			return agent.StatusOf(code)
		}
	}
	return 0
}

// validatesStatus reports whether an HTTP status in the tag t counts only if it is valid. By the
// agent's rules it must be valid, except for numbers in OTLP requests.
func (r *labeller) validatesStatus(t *spantable.Tag) bool {
	return r.rulebook.followsAgent && (r.source != fromOTLP || t.Value == spantable.IsText)
}

// statusCode returns the value of a tag as an integer, and parses it if it is a text. ok is false if
// the value is not an integer.
func (r *labeller) statusCode(t *spantable.Tag) (code int64, ok bool) {
	switch {
	case t.Value != spantable.IsText:
		return integerValue(t)
	case r.rulebook.status.digitsOnly:
		code, err := strconv.ParseUint(r.viewText(t.Text()), 10, 32)
		return int64(code), err == nil
	}
	return agent.ParseStatus(r.viewText(t.Text()))
}

// grpcStatus returns the gRPC status of s, the current span, in decimal digits. It returns an empty
// string if the span has none.
func (r *labeller) grpcStatus(s *spantable.Span) string {
	rule := &r.rulebook.status
	if rule.rawGRPC {
		if r.table.String(s.Type) == "rpc" {
			return r.formatValue(rule.grpc[0])
		}
		return ""
	}
	if rule.textFirst {
		for _, l := range rule.grpc {
			if code := agent.ParseGRPCStatus(r.textValue(l)); code != "" {
				return code
			}
		}
	}
	for _, l := range rule.grpc {
		t := r.findTag(l)
		if t == nil || !r.isGRPCStatusTag(l) {
			continue
		}
		if t.Value == spantable.IsText && t.Text().Len > 0 && !rule.textFirst {
			return agent.ParseGRPCStatus(r.viewText(t.Text()))
		}
		if code, ok := integerValue(t); ok {
			start := len(r.scratch)
			r.scratch = strconv.AppendInt(r.scratch, code, 10)
			return agent.ParseGRPCStatus(spantable.View(r.scratch[start:]))
		}
	}
	return ""
}

// isGRPCStatusTag reports whether the tag l of the current span contains the status of a gRPC call.
// The tag rpc.response.status_code can also contain the status of another RPC system.
func (r *labeller) isGRPCStatusTag(l label) bool {
	if l != labelRPCResponseStatus || r.rulebook.status.anySystem {
		return true
	}
	return agent.CallsGRPC(r.textValue(labelRPCSystemName), r.textValue(labelRPCSystem))
}
