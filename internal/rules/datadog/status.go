package datadog

import (
	"strconv"

	agent "github.com/spanstatsd/spanstatsd/client/rules"
	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

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
