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

// labeller makes the fingerprint and the key of the selected span.
type labeller struct {
	tags
	policy      *Policy
	own         *bookLabels // labels of the rulebook
	services    serviceNames
	source      source
	id          rulebookID
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

// traceRoot returns whether the span is its trace's root, or that the tracer does not tell.
func (r *labeller) traceRoot(s *spantable.Span) span.TraceRoot {
	switch {
	case r.book.omitsTraceRoot:
		return span.TraceRootNotSet
	case s.Parent == 0:
		return span.TraceRootTrue
	}
	return span.TraceRootFalse
}

// kindName returns the span kind for the key: a known one by the agent's rules, the tracer's value
// by others.
func (r *labeller) kindName(s *spantable.Span) string {
	switch {
	case r.book.normalizing:
		return s.Kind.String()
	case r.source != fromFields:
		return r.plain(decode.LabelKind)
	case s.Kind == spantable.KindUnknown:
		return ""
	}
	return s.Kind.String()
}

// endpoint returns the HTTP endpoint of the selected span, by a tracer's rules.
func (r *labeller) endpoint() (endpoint string) {
	for _, l := range r.own.endpoints {
		if endpoint = r.plain(l); endpoint != "" || r.book.emptyEndpoint && r.tag(l) != nil {
			break
		}
	}
	return endpoint
}

// readOwn sets the kind of s, which must be selected, and whether it is synthetic, by a tracer's
// rules. In a body of v1.0 both are set already.
func (r *labeller) readOwn(s *spantable.Span) {
	if r.source == fromFields {
		return
	}
	t := r.tag(decode.LabelKind)
	if s.Kind = spantable.KindUnknown; t != nil && t.Value == spantable.IsText {
		s.Kind = r.book.kindOf(r.table.Bytes(t.Text()))
	}
	s.IsSynthetic = r.book.isSynthetic(r.plain(decode.LabelOrigin))
}

// kindOf returns the span kind with this name.
func (b *rulebook) kindOf(name []byte) spantable.Kind {
	for k := spantable.KindInternal; k < spantable.KindOther; k++ {
		if string(name) == k.String() || b.foldsKind && isFolded(name, k.String()) {
			return k
		}
	}
	if len(name) == 0 {
		return spantable.KindUnknown
	}
	return spantable.KindOther
}

// isFolded reports whether text equals name, which is in lower case, ignoring the case of ASCII
// letters.
func isFolded(text []byte, name string) bool {
	if len(text) != len(name) {
		return false
	}
	for i, c := range text {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != name[i] {
			return false
		}
	}
	return true
}

// mainService returns the service of the payload that reports the trace's statistics. root must be
// selected. By the agent's rules it is the root's base service. By a tracer's rules it is the
// configured service of the process; a root of that service has no base service tag.
func (r *labeller) mainService(root *spantable.Span) string {
	switch {
	case r.book.normalizing:
		return r.baseService()
	case r.book.noMainService:
		return ""
	case r.tag(labelBaseService) != nil:
		return r.plain(labelBaseService)
	}
	return r.view(root.Service)
}

// baseService returns the base service of the selected span, or an empty string. It is the
// configured service of the process.
func (r *labeller) baseService() string {
	if t := r.tag(labelBaseService); t != nil && t.Value == spantable.IsText {
		return r.services.peer(r.text(t.Text()))
	}
	return ""
}

// isIgnored reports whether an ignore rule matches a tag of the selected span.
func (r *labeller) isIgnored() bool {
	return slices.ContainsFunc(r.policy.labels.ignorable, func(l label) bool {
		t := r.tag(l)
		return t != nil && t.Value != spantable.IsNested &&
			r.policy.ignored.MatchesAttribute(r.policy.labels.names[l], r.formatted(l))
	})
}

// fingerprintOf returns the fingerprint of the selected span. It is empty if its parts are too
// long, or if the span has a nested tag, because then making the key can fail.
func (r *labeller) fingerprintOf(s *spantable.Span) []byte {
	facts := uint32(s.Kind) | uint32(r.source)<<8 | uint32(r.id)<<16
	if s.Parent == 0 {
		facts |= 1 << 24
	}
	if s.IsSynthetic {
		facts |= 1 << 25
	}
	f, t := &r.fingerprint, r.table
	f.Reset(r.policy.id, facts)
	f.AppendText(t.String(s.Service))
	f.AppendText(t.String(s.Name))
	f.AppendText(t.String(s.Resource))
	f.AppendText(t.String(s.Type))
	f.AppendText(r.services.lang) // affects the name of a service without a name
	isNested := false
	wanted := &r.own.inKey[s.Kind]
	for i := range wanted {
		for set := r.Set[i] & wanted[i]; set != 0; set &= set - 1 {
			tag := &t.Tags[r.At(label(i<<6+bits.TrailingZeros64(set)))]
			isNested = isNested || tag.Value == spantable.IsNested
			f.AppendTag(t, tag)
		}
	}
	t.Charge(f.Size())
	if isNested {
		return nil
	}
	return f.Bytes()
}

// label makes the key of the selected span. The key is valid until the next call, and its texts
// until the next body.
func (r *labeller) label(s *spantable.Span) *span.Key {
	k := &r.key
	peers, additional := k.PeerTags[:0], k.AdditionalTags[:0]
	*k = span.Key{
		Service: r.services.service(r.text(s.Service)), Operation: r.view(s.Name),
		Resource: r.view(s.Resource), Type: r.view(s.Type),
		Kind: r.kindName(s), TraceRoot: r.traceRoot(s),
		HTTPStatus: r.httpStatus(), GRPCStatus: r.grpcStatus(s),
		ServiceSource: r.formatted(labelServiceSource), Synthetics: s.IsSynthetic,
	}
	k.PeerTags = r.peerTags(peers, s.Kind)
	k.AdditionalTags = r.additionalTags(additional, s.Kind)
	if r.own.endpoints != nil {
		k.HTTPMethod, k.HTTPEndpoint = r.plain(labelHTTPMethod), r.endpoint()
	}
	return k
}

// peerTags appends the peer tags of the selected span by the rulebook. For the agent's rules, see
// agent.PeerTags.
func (r *labeller) peerTags(dst []string, kind spantable.Kind) []string {
	peers := &r.book.peers
	switch {
	case peers.kinds.Has(kind):
		for _, l := range r.policy.labels.peers {
			dst = r.peerTag(dst, l, kind)
		}
	case !peers.base.Has(kind) || len(r.policy.labels.peers) == 0 && !peers.baseAlways:
	case !r.book.normalizing || r.baseService() != "":
		dst = r.peerTag(dst, labelBaseService, kind)
	}
	return dst
}

// peerTag appends the peer tag l, if the selected span has it.
func (r *labeller) peerTag(dst []string, l label, kind spantable.Kind) []string {
	source := r.resolveAlias(l, kind)
	t := r.tag(source)
	if t == nil || t.Value != spantable.IsText && r.book.peers.textOnly {
		return dst
	}
	value := r.formatted(source)
	if r.book.normalizing && t.Value == spantable.IsText && (l == labelPeerService || l == labelBaseService) {
		value = r.services.peer(r.text(t.Text()))
	}
	if value == "" {
		return dst
	}
	if !r.book.peers.raw {
		value = agent.QuantizePeer(value)
	}
	return append(dst, r.joined(r.policy.labels.names[l], value))
}

// additionalTags appends the additional tags of the selected span.
func (r *labeller) additionalTags(dst []string, kind spantable.Kind) []string {
	for _, l := range r.own.additional {
		source := r.resolveAlias(l, kind)
		if t := r.tag(source); t == nil || t.Value != spantable.IsText && r.book.peers.textOnly {
			continue
		}
		if value := r.formatted(source); value != "" {
			dst = append(dst, r.joined(r.policy.labels.names[l], value))
		}
	}
	return dst
}

// resolveAlias returns the tag to read for l: if the selected span does not have l, the tag that is
// sent instead according to the rulebook's aliases.
func (r *labeller) resolveAlias(l label, kind spantable.Kind) label {
	for _, a := range r.own.aliases {
		if a.second == l && a.kinds.Has(kind) && !r.Set.Has(l) {
			return a.first
		}
	}
	return l
}

// httpStatus returns the HTTP status of the selected span by the rulebook, see agent.HTTPStatus.
// The agent's receiver removes a status that is invalid.
func (r *labeller) httpStatus() uint32 {
	if t := r.tag(labelHTTPStatus); t != nil {
		if !r.validatesStatus(t) || agent.ValidHTTPStatus(r.formatted(labelHTTPStatus)) {
			if code, ok := r.statusCode(t); ok {
				return agent.StatusOf(code)
			}
		}
	}
	if t := r.tag(labelOTelHTTPStatus); t != nil && r.book.status.otel {
		if code, ok := r.statusCode(t); ok {
			return agent.StatusOf(code)
		}
	}
	return 0
}

// validatesStatus reports whether the agent removes t if it is not a valid HTTP status. It keeps
// numbers of its own OTLP ingest.
func (r *labeller) validatesStatus(t *spantable.Tag) bool {
	return r.book.normalizing && (r.source != fromOTLP || t.Value == spantable.IsText)
}

// statusCode returns the value of a tag as an integer. Text is parsed.
func (r *labeller) statusCode(t *spantable.Tag) (int64, bool) {
	switch {
	case t.Value != spantable.IsText:
		return integer(t)
	case r.book.status.digitsOnly:
		code, err := strconv.ParseUint(r.view(t.Text()), 10, 32)
		return int64(code), err == nil
	}
	return agent.ParseStatus(r.view(t.Text()))
}

// grpcStatus returns the gRPC status of the selected span by the rulebook, see agent.GRPCStatus.
// Tags may have any type.
func (r *labeller) grpcStatus(s *spantable.Span) string {
	rule := &r.book.status
	if rule.rawGRPC {
		if string(r.table.Bytes(s.Type)) == "rpc" {
			return r.formatted(rule.grpc[0])
		}
		return ""
	}
	if rule.textFirst {
		for _, l := range rule.grpc {
			if code := agent.ParseGRPCStatus(r.plain(l)); code != "" {
				return code
			}
		}
	}
	for _, l := range rule.grpc {
		t := r.tag(l)
		if t == nil {
			continue
		}
		needsGRPC := l == labelRPCResponseStatus && !rule.anySystem
		if needsGRPC && !agent.CallsGRPC(r.plain(labelRPCSystemName), r.plain(labelRPCSystem)) {
			continue
		}
		if t.Value == spantable.IsText && t.Text().Len > 0 && !rule.textFirst {
			return agent.ParseGRPCStatus(r.view(t.Text()))
		}
		if code, ok := integer(t); ok {
			start := len(r.made)
			r.made = strconv.AppendInt(r.made, code, 10)
			return agent.ParseGRPCStatus(spantable.View(r.made[start:]))
		}
	}
	return ""
}
