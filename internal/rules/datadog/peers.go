package datadog

import (
	agent "github.com/spanstatsd/spanstatsd/client/rules"
	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

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
