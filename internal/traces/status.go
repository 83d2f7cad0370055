package traces

import (
	"strconv"

	"github.com/spanstatsd/spanstatsd/client/rules"
)

// httpStatus is rules.HTTPStatus for a span as the rulebook sees it: the agent's receiver takes
// away what can't be one.
func (c *Counter) httpStatus() uint32 {
	if t := c.tag(labelHTTPStatus); t != nil && (!c.mendsStatus(t) || rules.ValidHTTPStatus(c.written(labelHTTPStatus))) {
		if code, ok := c.whole(t); ok {
			return rules.StatusOf(code)
		}
	}
	if t := c.tag(labelOTelHTTPStatus); t != nil && c.rulebook.otelStatus {
		if code, ok := c.whole(t); ok {
			return rules.StatusOf(code)
		}
	}
	return 0
}

// mendsStatus says whether the agent takes away what can't be a status: not where its OTLP
// ingest has made a number of it.
func (c *Counter) mendsStatus(t *tag) bool {
	return c.rulebook.mending && (c.payload.format != FormatIngest || t.kind == isText)
}

// whole reads a tag as a whole number, also from text.
func (c *Counter) whole(t *tag) (int64, bool) {
	if t.kind == isText && c.rulebook.digitStatus {
		code, err := strconv.ParseUint(view(c.text(t.text())), 10, 32)
		return int64(code), err == nil
	}
	if t.kind == isText {
		return rules.ParseStatus(view(c.text(t.text())))
	}
	return t.whole()
}

// grpcStatus is rules.GRPCStatus for tags of any type, where the rulebook asks for them.
func (c *Counter) grpcStatus(rec *record) string {
	if c.rulebook.rawGRPC {
		if string(rec.kindOfWork.Of(c.payload.body)) == "rpc" {
			return c.written(c.rulebook.grpc[0])
		}
		return ""
	}
	if c.rulebook.textGRPC {
		for _, l := range c.rulebook.grpc {
			if code := rules.ParseGRPCStatus(c.plain(l)); code != "" {
				return code
			}
		}
	}
	for _, l := range c.rulebook.grpc {
		t := c.tag(l)
		if t == nil {
			continue
		}
		if l == labelRPCResponseStatus && !c.rulebook.anySystem && !rules.CallsGRPC(c.plain(labelRPCSystemName), c.plain(labelRPCSystem)) {
			continue
		}
		if t.kind == isText && t.text().Len > 0 && !c.rulebook.textGRPC {
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
