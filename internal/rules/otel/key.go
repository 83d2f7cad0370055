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
	operation   []byte           // operation of key
	name        []byte           // name of a span that was renamed
	httpTags    [httpParts]int32 // indexes in the request of the tags of the HTTP span that is being named, or noTag
}

// selectSpan makes s the selected span, whose attributes the other methods read. Attributes that s does
// not have are read from res, its resource, if the operator has configured them as labels.
func (k *keys) selectSpan(s *spantable.Span, res *resource) {
	k.selectWithoutResource(s)
	k.selected.AddMissing(&k.request.Table, res.firstTag, res.lastTag)
}

// selectWithoutResource makes s the selected span, whose attributes the other methods read. They do not
// read attributes of its resource.
func (k *keys) selectWithoutResource(s *spantable.Span) {
	k.selected.Set = spantable.LabelSet{}
	k.selected.AddMissing(&k.request.Table, s.TagStart, s.TagEnd)
	k.scratch = k.scratch[:0]
}

// Bits of a fingerprint, in addition to the kind of the span.
const (
	fingerprintRoot     = 1 << 8
	fingerprintStatusOK = 1 << 9
)

// fingerprintOf returns the fingerprint of s, by which a cache finds the labels of s: spans with the same
// fingerprint have the same labels. It is nil if it would be longer than rules.MaxFingerprint. res is the
// resource of s. isRenamed reports whether s is not counted under the name that was sent.
func (k *keys) fingerprintOf(s *spantable.Span, res *resource) (fingerprint []byte, isRenamed bool) {
	properties := uint32(s.Kind)
	if s.Parent == 0 {
		properties |= fingerprintRoot
	}
	if s.Status == spantable.StatusOK {
		properties |= fingerprintStatusOK
	}
	name := k.nameOf(s, res)
	k.fingerprint.Reset(k.policy.id, properties)
	k.fingerprint.AppendText(res.service)
	k.fingerprintTags(s.Kind, s.TagStart, s.TagEnd)
	k.fingerprintTags(s.Kind, res.firstTag, res.lastTag)
	k.fingerprint.AppendText(name.text)
	if name.route != "" {
		k.fingerprint.AppendText(name.route)
	}
	k.request.AddReadBytes(k.fingerprint.Size()) // fails the request if its spans refer to too much text
	return k.fingerprint.Bytes(), name.isRenamed
}

// fingerprintTags appends tags of the request, the elements of Tags[first:last], to the fingerprint. It
// omits tags that cannot affect the key of a span of the given kind.
func (k *keys) fingerprintTags(kind spantable.Kind, first, last uint32) {
	table := &k.request.Table
	affectsKey := &k.policy.affectsKey[kind]
	tags := table.Tags[first:last]
	for i := range tags {
		if affectsKey.Has(tags[i].Label) {
			k.fingerprint.AppendTag(table, &tags[i])
		}
	}
}

// isIgnored reports whether the operator has excluded s from the statistics by a rule for the value of
// an attribute. res is the resource of s.
func (k *keys) isIgnored(s *spantable.Span, res *resource) bool {
	if len(k.policy.ignoreLabels) == 0 {
		return false
	}
	k.selectSpan(s, res)
	return slices.ContainsFunc(k.policy.ignoreLabels, func(l spantable.Label) bool {
		name, valueOfSpan := k.policy.names.Name(l), k.text(l)
		return k.policy.ignore.MatchesAttribute(name, valueOfSpan)
	})
}

// keyOf returns the key of s, the labels under which it is counted. res is the resource of s. The key is
// valid until the next call.
func (k *keys) keyOf(s *spantable.Span, res *resource) *span.Key {
	name := k.nameOf(s, res)
	k.selectSpan(s, res) // for the calls below; nameOf selects s without the attributes of its resource
	k.operation = work.AppendOperation(k.operation[:0], k, s.Kind)
	traceRoot := span.TraceRootFalse
	if s.Parent == 0 {
		traceRoot = span.TraceRootTrue
	}
	peerTags, additionalTags := k.key.PeerTags[:0], k.key.AdditionalTags[:0] // their memory is reused
	if s.Status == spantable.StatusOK {
		additionalTags = append(additionalTags, span.StatusOK)
	}
	k.key = span.Key{
		Service:        res.service,
		Operation:      spantable.View(k.operation),
		Resource:       name.text,
		Type:           work.Type(k, s.Kind),
		Kind:           s.Kind.String(),
		TraceRoot:      traceRoot,
		HTTPMethod:     k.text(labelHTTPMethod, labelOldHTTPMethod),
		HTTPEndpoint:   cmp.Or(k.text(labelHTTPRoute), name.route),
		HTTPStatus:     k.httpStatus(),
		GRPCStatus:     k.grpcStatus(),
		PeerTags:       k.appendPeerTags(peerTags, s.Kind),
		AdditionalTags: additionalTags,
	}
	return &k.key
}

// appendPeerTags appends the peer tags of the selected span to dst, each as "name:value". It omits tags without a value.
func (k *keys) appendPeerTags(dst []string, kind spantable.Kind) []string {
	for _, label := range k.policy.tags {
		if !k.policy.isTagOf(kind, label) {
			continue
		}
		if value := k.peerTagValue(label, kind); value != "" {
			dst = append(dst, k.join(k.policy.names.Name(label), ":", value))
		}
	}
	return k.appendMetricTags(dst, kind)
}

// peerTagValue returns the value of a peer tag of the selected span, which has the given kind, or "" if
// the span does not have it. If the attribute has an older name, peerTagValue also looks for that.
func (k *keys) peerTagValue(label spantable.Label, kind spantable.Kind) string {
	if label == labelServerAddress {
		return k.serverAddress(kind)
	}
	oldLabel, hasOldName := olderName(label)
	if hasOldName {
		return k.text(label, oldLabel)
	}
	return k.text(label)
}

// olderName returns the label for the older name of an attribute, which follows that for its present name. It
// returns false if the attribute has no older name.
func olderName(label spantable.Label) (oldLabel spantable.Label, ok bool) {
	oldLabel = label + 1
	return oldLabel, oldLabels.Has(oldLabel)
}
