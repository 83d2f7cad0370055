package otel

import (
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/rules"
	"github.com/spanstatsd/spanstatsd/internal/rules/work"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// keys makes the keys of spans.
type keys struct {
	attributes
	memory rules.Keys
	policy *Policy
	key    span.Key
	name   []byte // of an operation, while it is made
}

// of is the key of a span, whose resource gives it the tags from first to last that an operator
// named. It is empty where the span is ignored, and good until the next.
func (k *keys) of(s *spantable.Span, first, last uint32, service []byte) []byte {
	table := &k.request.Table
	facts := uint64(s.Kind) | uint64(len(service))<<16 | uint64(s.Name.Len)<<32
	if s.Parent == 0 {
		facts |= 1 << 8
	}
	if s.Status == spantable.StatusOK {
		facts |= 1 << 9
	}
	k.memory.Begin(facts)
	k.memory.Put(service)
	k.memory.Put(table.Bytes(s.Name))
	for i := s.First; i < s.Last && k.memory.PutTag(table, &table.Tags[i]); i++ {
	}
	for i := first; i < last && k.memory.PutTag(table, &table.Tags[i]); i++ {
	}
	if key := k.memory.Find(); key != nil {
		return key
	}
	k.selected.Set = spantable.LabelSet{}
	k.selected.AddMissing(table, s.First, s.Last)
	k.selected.AddMissing(table, first, last)
	key := k.encoded(s, service)
	k.memory.Keep()
	return key
}

// encoded makes the key of the selected span.
func (k *keys) encoded(s *spantable.Span, service []byte) []byte {
	k.scratch = k.scratch[:0]
	if k.isIgnored() {
		return k.memory.Ignore()
	}
	return k.memory.Encode(k.label(s, spantable.View(service)))
}

// isIgnored says whether an attribute of the selected span is one that is ignored.
func (k *keys) isIgnored() bool {
	return slices.ContainsFunc(k.policy.ignorable, func(l spantable.Label) bool {
		return k.policy.ignore.Attribute(k.policy.names.Name(l), k.text(l))
	})
}

// label makes the key of the selected span. It is good until the next, and its labels until the
// body is used again.
func (k *keys) label(s *spantable.Span, service string) *span.Key {
	k.name = work.AppendOperation(k.name[:0], k, s.Kind)
	key := &k.key
	peers, additional := key.PeerTags[:0], key.AdditionalTags[:0]
	*key = span.Key{
		Service: service, Operation: spantable.View(k.name), Resource: k.request.String(s.Name),
		Type: work.Type(k, s.Kind), Kind: s.Kind.String(), TraceRoot: span.TraceRootFalse,
		HTTPStatus: k.httpStatus(), GRPCStatus: k.grpcStatus(),
		HTTPMethod: k.text(labelHTTPMethod, labelOldHTTPMethod), HTTPEndpoint: k.text(labelHTTPRoute),
	}
	if s.Parent == 0 {
		key.TraceRoot = span.TraceRootTrue
	}
	key.PeerTags = k.peerTags(peers, s.Kind)
	if key.AdditionalTags = additional; s.Status == spantable.StatusOK {
		key.AdditionalTags = append(additional, span.StatusOK)
	}
	return key
}

// peerTags appends the tags of the selected span, under their present names.
func (k *keys) peerTags(dst []string, kind spantable.Kind) []string {
	for _, l := range k.policy.tags {
		value := ""
		switch {
		case !k.policy.hasTag(kind, l):
			continue
		case l == labelServerAddress:
			value = k.serverAddress(kind)
		case oldLabels.Has(l + 1):
			value = k.text(l, l+1)
		default:
			value = k.text(l)
		}
		if value == "" {
			continue
		}
		start := len(k.scratch)
		k.scratch = append(append(k.scratch, k.policy.names.Name(l)...), ':')
		k.scratch = append(k.scratch, value...)
		dst = append(dst, spantable.View(k.scratch[start:]))
	}
	return dst
}
