package traces

import "github.com/spanstatsd/spanstatsd/internal/span"

// label makes the key of the selected span. It is good until the next, and its
// labels until the body is used again.
func (c *Counter) label(rec *record) *span.Key {
	k := &c.key
	peers, additional := k.PeerTags[:0], k.AdditionalTags[:0]
	*k = span.Key{
		Service: c.services.service(c.text(rec.service)), Operation: view(c.text(rec.name)),
		Resource: view(c.text(rec.resource)), Type: view(c.text(rec.kindOfWork)),
		Kind: c.kindName(rec), TraceRoot: c.traceRoot(rec),
		HTTPStatus: c.httpStatus(), GRPCStatus: c.grpcStatus(rec),
		ServiceSource: c.written(labelServiceSource), Synthetics: c.synthetic,
	}
	k.PeerTags = c.peerTags(peers, rec.kind)
	k.AdditionalTags = c.additionalTags(additional, rec.kind)
	k.HTTPMethod, k.HTTPEndpoint = c.endpoint()
	return k
}

func (c *Counter) traceRoot(rec *record) span.TraceRoot {
	switch {
	case c.rulebook.rootUnsaid:
		return span.TraceRootNotSet
	case rec.parent == 0:
		return span.TraceRootTrue
	}
	return span.TraceRootFalse
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
