package otel

import (
	"cmp"
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/rules"
	"github.com/spanstatsd/spanstatsd/internal/rules/work"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// keys makes the fingerprints and keys of spans.
type keys struct {
	attributes
	fingerprint rules.Fingerprint
	policy      *Policy
	key         span.Key
	operation   []byte            // operation of key
	name        []byte            // name of a span that was renamed
	http        [httpParts]uint32 // tags of the HTTP span that is being named: 1 plus the index, or 0
	route       string            // route in the name of the span, see nameOf
	isGo        bool              // the spans are from Go's SDK
}

// selectSpan selects a span for reading its attributes. Attributes that it does not have are read
// from the tags first to last of its resource.
func (k *keys) selectSpan(s *spantable.Span, first, last uint32) {
	k.selected.Set = spantable.LabelSet{}
	k.selected.AddMissing(&k.request.Table, s.First, s.Last)
	k.selected.AddMissing(&k.request.Table, first, last)
	k.scratch = k.scratch[:0]
}

// selectOwn selects the tags of a span only.
func (k *keys) selectOwn(s *spantable.Span) { k.selectSpan(s, 0, 0) }

// fingerprintOf returns the fingerprint of a span, and reports whether the span is counted under another
// name than its own. Its attributes are its own and the tags first to last of its resource; service is the
// service of its origin.
func (k *keys) fingerprintOf(s *spantable.Span, service string, first, last uint32) (fingerprint []byte, isRenamed bool) {
	table, f := &k.request.Table, &k.fingerprint
	facts := uint32(s.Kind)
	if s.Parent == 0 {
		facts |= 1 << 8
	}
	if s.Status == spantable.StatusOK {
		facts |= 1 << 9
	}
	f.Reset(k.policy.id, facts)
	f.AppendText(service)
	inKey := &k.policy.inKey[s.Kind]
	for _, tags := range [...][]spantable.Tag{table.Tags[s.First:s.Last], table.Tags[first:last]} {
		for i := range tags {
			if inKey.Has(tags[i].Label) {
				f.AppendTag(table, &tags[i])
			}
		}
	}
	name := k.nameOf(s)
	f.AppendText(name.text)
	if name.route != "" {
		f.AppendText(name.route)
	}
	table.Charge(f.Size())
	return f.Bytes(), name.isRenamed
}

// isIgnored reports whether an ignore rule matches an attribute of the span or of its resource. It
// selects the span if there are such rules.
func (k *keys) isIgnored(s *spantable.Span, first, last uint32) bool {
	if len(k.policy.ignorable) == 0 {
		return false
	}
	k.selectSpan(s, first, last)
	return slices.ContainsFunc(k.policy.ignorable, func(l spantable.Label) bool {
		return k.policy.ignore.MatchesAttribute(k.policy.names.Name(l), k.text(l))
	})
}

// label makes the key of the selected span. The key is valid until the next call, and its texts
// until the next body.
func (k *keys) label(s *spantable.Span, service string, first, last uint32) *span.Key {
	name := k.nameOf(s)
	k.selectSpan(s, first, last)
	k.operation = work.AppendOperation(k.operation[:0], k, s.Kind)
	key := &k.key
	peers, additional := key.PeerTags[:0], key.AdditionalTags[:0]
	*key = span.Key{
		Service: service, Operation: spantable.View(k.operation), Resource: name.text,
		Type: work.Type(k, s.Kind), Kind: s.Kind.String(), TraceRoot: span.TraceRootFalse,
		HTTPStatus: k.httpStatus(), GRPCStatus: k.grpcStatus(),
		HTTPMethod: k.text(labelHTTPMethod, labelOldHTTPMethod), HTTPEndpoint: cmp.Or(k.text(labelHTTPRoute), name.route),
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

// peerTags appends the peer tags of the selected span, under their current names.
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
