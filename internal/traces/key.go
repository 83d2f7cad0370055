package traces

import (
	"github.com/spanstatsd/spanstatsd/client/rules"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// label makes the key of the selected span. It is good until the next, and its
// labels until the body is used again.
func (c *Counter) label(rec *record) *span.Key {
	k := &c.key
	peers := k.PeerTags[:0]
	*k = span.Key{
		Service: c.services.service(c.text(rec.service)), Operation: view(c.text(rec.name)),
		Resource: view(c.text(rec.resource)), Type: view(c.text(rec.kindOfWork)),
		Kind: kindNames[rec.kind], TraceRoot: span.TraceRootFalse,
		HTTPStatus: c.httpStatus(), GRPCStatus: c.grpcStatus(),
		ServiceSource: c.written(labelServiceSource), Synthetics: c.synthetic,
	}
	if rec.parent == 0 {
		k.TraceRoot = span.TraceRootTrue
	}
	k.PeerTags = c.peerTags(peers, rec.kind)
	return k
}

// baseService is the service that the selected span's process is configured as.
func (c *Counter) baseService() string {
	if t := c.tag(labelBaseService); t != nil && t.kind == isText {
		return c.services.peer(c.text(t.text()))
	}
	return ""
}

// peerTags appends the tags that rules.PeerTags would, for a span as the agent's
// receiver leaves it: with the names of services rewritten, and any value as text.
func (c *Counter) peerTags(dst []string, kind kind) []string {
	switch kind {
	case kindClient, kindProducer, kindConsumer:
		for _, l := range c.policy.labels.peers {
			if c.set.has(l) {
				dst = c.peerTag(dst, l)
			}
		}
	case kindInternal:
		if c.set.has(labelBaseService) && len(c.policy.labels.peers) > 0 && c.baseService() != "" {
			dst = c.peerTag(dst, labelBaseService)
		}
	}
	return dst
}

func (c *Counter) peerTag(dst []string, l label) []string {
	value := c.written(l)
	if l == labelPeerService || l == labelBaseService {
		if t := c.tag(l); t.kind == isText {
			value = c.services.peer(c.text(t.text()))
		}
	}
	if value == "" {
		return dst
	}
	value = rules.QuantizePeer(value)
	start := len(c.scratch)
	c.scratch = append(c.scratch, c.policy.labels.names[l]...)
	c.scratch = append(c.scratch, ':')
	c.scratch = append(c.scratch, value...)
	return append(dst, view(c.scratch[start:]))
}

// written is a tag's value as text, whatever it was written as.
func (c *Counter) written(l label) string {
	t := c.tag(l)
	switch {
	case t == nil:
		return ""
	case t.kind == isText:
		return view(c.text(t.text()))
	case t.kind == isNested:
		c.payload.Fail() // only the agent can say how that reads
		return ""
	}
	start := len(c.scratch)
	c.scratch = t.append(c.scratch, c.payload.body)
	return view(c.scratch[start:])
}

// httpStatus is rules.HTTPStatus behind the agent's receiver, which takes away
// what can't be one.
func (c *Counter) httpStatus() uint32 {
	if t := c.tag(labelHTTPStatus); t != nil && rules.ValidHTTPStatus(c.written(labelHTTPStatus)) {
		if code, ok := c.whole(t); ok {
			return rules.StatusOf(code)
		}
	}
	if t := c.tag(labelOTelHTTPStatus); t != nil {
		if code, ok := c.whole(t); ok {
			return rules.StatusOf(code)
		}
	}
	return 0
}

// whole reads a tag as a whole number, also from text.
func (c *Counter) whole(t *tag) (int64, bool) {
	if t.kind == isText {
		return rules.ParseStatus(view(c.text(t.text())))
	}
	return t.whole()
}

// grpcStatus is rules.GRPCStatus for tags of any type.
func (c *Counter) grpcStatus() string {
	for i := range label(len(rules.GRPCStatusTags)) {
		t := c.tag(labelGRPCStatus + i)
		if t == nil {
			continue
		}
		if labelGRPCStatus+i == labelRPCResponseStatus && !rules.CallsGRPC(c.plain(labelRPCSystemName), c.plain(labelRPCSystem)) {
			continue
		}
		if t.kind == isText && t.text().Len > 0 {
			return rules.ParseGRPCStatus(view(c.text(t.text())))
		}
		if code, ok := t.whole(); ok {
			start := len(c.scratch)
			c.scratch = (&tag{kind: isInteger, bits: uint64(code)}).append(c.scratch, nil)
			return rules.ParseGRPCStatus(view(c.scratch[start:]))
		}
	}
	return ""
}
