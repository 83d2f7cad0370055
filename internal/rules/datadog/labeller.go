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

// labeller makes the key of the selected span.
type labeller struct {
	tags
	policy      *Policy
	own         *labelsOf
	services    serviceNames
	source      source
	id          rulebookID
	fingerprint rules.Fingerprint
	key         span.Key // that was made last
}

// source is where a table comes from, as far as a rule has to know.
type source uint8

const (
	fromTags   source = iota // a span's kind and its trace's origin are tags
	fromFields               // they are fields of their own, as in v1.0
	fromOTLP                 // the agent's own ingest has made it of OTLP
)

func (r *labeller) traceRoot(s *spantable.Span) span.TraceRoot {
	switch {
	case r.book.rootUnsaid:
		return span.TraceRootNotSet
	case s.Parent == 0:
		return span.TraceRootTrue
	}
	return span.TraceRootFalse
}

// kindName is the label: for the agent one of those that it knows, for a tracer what the span
// says.
func (r *labeller) kindName(s *spantable.Span) string {
	switch {
	case r.book.mending:
		return s.Kind.String()
	case r.source != fromFields:
		return r.plain(decode.LabelKind)
	case s.Kind == spantable.KindUnknown:
		return ""
	}
	return s.Kind.String()
}

// endpoint is what a tracer says of a request over HTTP.
func (r *labeller) endpoint() (endpoint string) {
	for _, l := range r.own.endpoints {
		if endpoint = r.plain(l); endpoint != "" || r.book.emptyEndpoint && r.tag(l) != nil {
			break
		}
	}
	return endpoint
}

// readOwn reads of the selected span what decides whether it counts, as its tracer does.
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

// kindOf is the kind of a name.
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

// isFolded says whether a text is a name, but for its capitals. Letters beyond ASCII are no
// letters of a kind.
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

// mainService is the one that payloads with the spans of a trace name, by its root, which is
// selected. The agent takes the root's base service alone; a tracer names what its process is
// configured as, and a span of that service has no base service.
func (r *labeller) mainService(root *spantable.Span) string {
	switch {
	case r.book.mending:
		return r.baseService()
	case r.book.noMainService:
		return ""
	case r.tag(labelBaseService) != nil:
		return r.plain(labelBaseService)
	}
	return r.view(root.Service)
}

// baseService is the service that the selected span's process is configured as.
func (r *labeller) baseService() string {
	if t := r.tag(labelBaseService); t != nil && t.Value == spantable.IsText {
		return r.services.peer(r.text(t.Text()))
	}
	return ""
}

// isIgnored says whether a tag of the selected span is one that is ignored.
func (r *labeller) isIgnored() bool {
	return slices.ContainsFunc(r.policy.labels.ignorable, func(l label) bool {
		t := r.tag(l)
		return t != nil && t.Value != spantable.IsNested &&
			r.policy.ignored.Attribute(r.policy.labels.names[l], r.written(l))
	})
}

// fingerprintOf returns the fingerprint of the selected span. It is empty if the span has a nested tag, which
// may fail its labelling, or is too long.
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
	f.AppendText(r.services.lang) // a part of the name of a service without one
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

// label makes the key of the selected span. It is good until the next, and its labels until the
// body is used again.
func (r *labeller) label(s *spantable.Span) *span.Key {
	k := &r.key
	peers, additional := k.PeerTags[:0], k.AdditionalTags[:0]
	*k = span.Key{
		Service: r.services.service(r.text(s.Service)), Operation: r.view(s.Name),
		Resource: r.view(s.Resource), Type: r.view(s.Type),
		Kind: r.kindName(s), TraceRoot: r.traceRoot(s),
		HTTPStatus: r.httpStatus(), GRPCStatus: r.grpcStatus(s),
		ServiceSource: r.written(labelServiceSource), Synthetics: s.IsSynthetic,
	}
	k.PeerTags = r.peerTags(peers, s.Kind)
	k.AdditionalTags = r.additionalTags(additional, s.Kind)
	if r.own.endpoints != nil {
		k.HTTPMethod, k.HTTPEndpoint = r.plain(labelHTTPMethod), r.endpoint()
	}
	return k
}

// peerTags appends the tags that agent.PeerTags would, for a span as the rulebook sees it.
func (r *labeller) peerTags(dst []string, kind spantable.Kind) []string {
	peers := &r.book.peers
	switch {
	case peers.kinds.Has(kind):
		for _, l := range r.policy.labels.peers {
			dst = r.peerTag(dst, l, kind)
		}
	case !peers.base.Has(kind) || len(r.policy.labels.peers) == 0 && !peers.baseAlways:
	case !r.book.mending || r.baseService() != "":
		dst = r.peerTag(dst, labelBaseService, kind)
	}
	return dst
}

// peerTag appends one, if the selected span has it.
func (r *labeller) peerTag(dst []string, l label, kind spantable.Kind) []string {
	from := r.named(l, kind)
	t := r.tag(from)
	if t == nil || t.Value != spantable.IsText && r.book.peers.textOnly {
		return dst
	}
	value := r.written(from)
	if r.book.mending && t.Value == spantable.IsText && (l == labelPeerService || l == labelBaseService) {
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

// additionalTags appends the tags that the rulebook adds.
func (r *labeller) additionalTags(dst []string, kind spantable.Kind) []string {
	for _, l := range r.own.additional {
		from := r.named(l, kind)
		if t := r.tag(from); t == nil || t.Value != spantable.IsText && r.book.peers.textOnly {
			continue
		}
		if value := r.written(from); value != "" {
			dst = append(dst, r.joined(r.policy.labels.names[l], value))
		}
	}
	return dst
}

// named is the tag that the selected span has by that name, be it the second of the tag.
func (r *labeller) named(l label, kind spantable.Kind) label {
	for _, a := range r.own.aliases {
		if a.second == l && a.kinds.Has(kind) && !r.Set.Has(l) {
			return a.first
		}
	}
	return l
}

// httpStatus is agent.HTTPStatus for a span as the rulebook sees it: the agent's receiver takes
// away what can't be one.
func (r *labeller) httpStatus() uint32 {
	if t := r.tag(labelHTTPStatus); t != nil {
		if !r.mendsStatus(t) || agent.ValidHTTPStatus(r.written(labelHTTPStatus)) {
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

// mendsStatus says whether the agent takes away what can't be a status: not where its OTLP ingest
// has made a number of it.
func (r *labeller) mendsStatus(t *spantable.Tag) bool {
	return r.book.mending && (r.source != fromOTLP || t.Value == spantable.IsText)
}

// statusCode reads a tag as a whole number, also from text.
func (r *labeller) statusCode(t *spantable.Tag) (int64, bool) {
	switch {
	case t.Value != spantable.IsText:
		return whole(t)
	case r.book.status.digitsOnly:
		code, err := strconv.ParseUint(r.view(t.Text()), 10, 32)
		return int64(code), err == nil
	}
	return agent.ParseStatus(r.view(t.Text()))
}

// grpcStatus is agent.GRPCStatus for tags of any type, where the rulebook asks for them.
func (r *labeller) grpcStatus(s *spantable.Span) string {
	rule := &r.book.status
	if rule.rawGRPC {
		if string(r.table.Bytes(s.Type)) == "rpc" {
			return r.written(rule.grpc[0])
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
		isOfGRPC := l != labelRPCResponseStatus || rule.anySystem
		if !isOfGRPC && !agent.CallsGRPC(r.plain(labelRPCSystemName), r.plain(labelRPCSystem)) {
			continue
		}
		if t.Value == spantable.IsText && t.Text().Len > 0 && !rule.textFirst {
			return agent.ParseGRPCStatus(r.view(t.Text()))
		}
		if code, ok := whole(t); ok {
			start := len(r.made)
			r.made = strconv.AppendInt(r.made, code, 10)
			return agent.ParseGRPCStatus(spantable.View(r.made[start:]))
		}
	}
	return ""
}
