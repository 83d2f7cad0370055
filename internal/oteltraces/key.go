package oteltraces

import (
	"github.com/spanstatsd/spanstatsd/client/rules"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// label makes the key of a span. It is good until the next, and its labels until the body
// is used again.
func (c *Counter) label(rec *record, r *resource, service string) *span.Key {
	c.selected.choose(&c.payload, rec, r)
	k := &c.key
	peers, additional := k.PeerTags[:0], k.AdditionalTags[:0]
	*k = span.Key{
		Service: service, Operation: c.operation(rec.kind), Resource: view(rec.name.of(c.payload.body)),
		Type: c.workType(rec.kind), Kind: kindNames[rec.kind], TraceRoot: span.TraceRootFalse,
		HTTPStatus: c.httpStatus(), GRPCStatus: c.grpcStatus(),
		HTTPMethod: c.written(labelHTTPMethod, labelOldHTTPMethod), HTTPEndpoint: c.written(labelHTTPRoute),
	}
	if rec.isRoot {
		k.TraceRoot = span.TraceRootTrue
	}
	k.PeerTags = c.peerTags(peers, rec.kind)
	if k.AdditionalTags = additional; rec.code == codeOK {
		k.AdditionalTags = append(additional, span.StatusOK)
	}
	return k
}

// peerTags appends the tags of the selected span, under their present names.
func (c *Counter) peerTags(dst []string, kind kind) []string {
	for _, l := range c.policy.tags {
		value := ""
		switch {
		case l == labelServerAddress:
			value = c.serverAddress(kind)
		case oldLabels.has(l + 1):
			value = c.written(l, l+1)
		default:
			value = c.written(l)
		}
		if value == "" {
			continue
		}
		start := len(c.scratch)
		c.scratch = append(append(c.scratch, c.policy.names.names[l]...), ':')
		c.scratch = append(c.scratch, value...)
		dst = append(dst, view(c.scratch[start:]))
	}
	return dst
}

// serverAddress is the server's name. Before there was an attribute for it, a client named
// its peer and a server itself.
func (c *Counter) serverAddress(kind kind) string {
	if kind == kindServer {
		return c.written(labelServerAddress, labelOldHostName)
	}
	return c.written(labelServerAddress, labelOldPeerName)
}

// httpStatus is the status of a response over HTTP, 0 where there is none.
func (c *Counter) httpStatus() uint32 {
	if t := c.tag(labelHTTPStatus, labelOldHTTPStatus); t != nil {
		if code, ok := c.whole(t); ok {
			return rules.StatusOf(code)
		}
	}
	return 0
}

// grpcStatus is the status of a call by gRPC, empty where there is none. Other systems have
// statuses under the present name too.
func (c *Counter) grpcStatus() string {
	l := labelGRPCStatus
	if c.tag(labelGRPCStatus) == nil && rules.CallsGRPC(c.written(labelRPCSystem), c.written(labelOldRPCSystem)) {
		l = labelRPCStatus
	}
	return rules.ParseGRPCStatus(c.written(l))
}
