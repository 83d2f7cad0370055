package datadog

import (
	"math/bits"
	"slices"
	"strings"

	"github.com/spanstatsd/spanstatsd/internal/rules"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

// encode makes the selected span's key, empty where the span is ignored. It is good until the next.
func (r *labeller) encode(s *spantable.Span) []byte {
	if !r.collect(s) {
		if r.isIgnored() {
			return r.keys.Ignore()
		}
		return r.keys.Encode(r.label(s))
	}
	r.table.Charge(r.keys.Length())
	if key := r.keys.Find(); key != nil {
		return key
	}
	if r.isIgnored() {
		defer r.keys.Keep()
		return r.keys.Ignore()
	}
	k := r.label(s)
	encoded := r.keys.Encode(k)
	// The name of a service without one depends on the language of its tracer, too.
	if r.table.Err() == nil && !strings.HasPrefix(k.Service, "unnamed-") {
		r.keys.Keep()
	}
	return encoded
}

// isIgnored says whether a tag of the selected span is one that is ignored.
func (r *labeller) isIgnored() bool {
	return slices.ContainsFunc(r.policy.labels.ignorable, func(l label) bool {
		t := r.tag(l)
		return t != nil && t.Value != spantable.IsNested &&
			r.policy.ignored.Attribute(r.policy.labels.names[l], r.written(l))
	})
}

// collect collects what the selected span's key is made of. It reports false where that is too
// much to be remembered, or can't be.
func (r *labeller) collect(s *spantable.Span) bool {
	service, name := uint64(s.Service.Len), uint64(s.Name.Len)
	resource, work := uint64(s.Resource.Len), uint64(s.Type.Len)
	if service+name+resource+work > rules.MaxSource-8 {
		return false
	}
	facts := uint64(s.Kind) | service<<8 | name<<20 | resource<<32 | work<<44 | uint64(r.id)<<56
	if s.Parent == 0 {
		facts |= 1 << 4
	}
	if r.isSynth {
		facts |= 1 << 5
	}
	if r.source == fromOTLP {
		facts |= 1 << 6
	}
	k, t := &r.keys, r.table
	k.Begin(facts)
	k.Put(t.Bytes(s.Service))
	k.Put(t.Bytes(s.Name))
	k.Put(t.Bytes(s.Resource))
	k.Put(t.Bytes(s.Type))
	wanted := &r.own.inKey[s.Kind]
	for i := range wanted {
		for set := r.Set[i] & wanted[i]; set != 0; set &= set - 1 {
			tag := &t.Tags[r.At(label(i<<6+bits.TrailingZeros64(set)))]
			if tag.Value == spantable.IsNested || !k.PutTag(t, tag) {
				return false
			}
		}
	}
	return k.Length() <= rules.MaxSource
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
		ServiceSource: r.written(labelServiceSource), Synthetics: r.isSynth,
	}
	k.PeerTags = r.peerTags(peers, s.Kind)
	k.AdditionalTags = r.additionalTags(additional, s.Kind)
	if r.own.endpoints != nil {
		k.HTTPMethod, k.HTTPEndpoint = r.plain(labelHTTPMethod), r.endpoint()
	}
	return k
}
