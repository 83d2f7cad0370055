package otel

import (
	"math"

	"github.com/spanstatsd/spanstatsd/client/rules"
	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	"github.com/spanstatsd/spanstatsd/internal/rules/work"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// attributes reads the attributes of the selected span.
type attributes struct {
	request  otlp.Request
	selected spantable.Selected
	scratch  []byte // texts of values that are not text in the body
}

// tag returns the tag of the selected span with the first of labels that the span has, or nil if it has none of them. A
// label is a number that stands for the name of a tag.
func (a *attributes) tag(labels ...spantable.Label) *spantable.Tag {
	for _, l := range labels {
		if a.selected.Set.Has(l) {
			return a.selected.Tag(&a.request.Table, l)
		}
	}
	return nil
}

// text returns the value of the tag that the method tag returns for labels, formatted as text, or "" if there is no
// such tag.
func (a *attributes) text(labels ...spantable.Label) string {
	if t := a.tag(labels...); t != nil {
		return a.textOfTag(t)
	}
	return ""
}

// textOfTag returns the value of a tag as text. The text is valid until another span is selected.
func (a *attributes) textOfTag(t *spantable.Tag) string {
	if t.Type == spantable.TypeText {
		return a.request.String(t.Text())
	}
	start := len(a.scratch)
	a.scratch = a.request.AppendValue(a.scratch, t)
	return spantable.View(a.scratch[start:])
}

// join returns the concatenation of three texts. It is valid until another span is selected.
func (a *attributes) join(first, separator, second string) string {
	start := len(a.scratch)
	a.scratch = append(a.scratch, first...)
	a.scratch = append(a.scratch, separator...)
	a.scratch = append(a.scratch, second...)
	return spantable.View(a.scratch[start:])
}

// Value returns the value of an attribute of the selected span, or "". It implements work.Span.
func (a *attributes) Value(attribute work.Attribute) string {
	if attribute != work.MessagingOperation {
		return a.text(workAttributes[attribute]...)
	}
	operationType := a.text(labelMessagingOperationType, labelOldMessagingOperation)
	if operationType != "" {
		return operationType
	}
	return a.text(labelMessagingOperation)
}

// integer returns the value of a tag as an integer. The value can be an integer, a float without a
// fraction, or a text that contains an integer. ok is false for all other values.
func (a *attributes) integer(t *spantable.Tag) (value int64, ok bool) {
	switch t.Type {
	case spantable.TypeInteger:
		return int64(t.Bits), true
	case spantable.TypeText:
		return rules.ParseInteger(a.request.String(t.Text()))
	case spantable.TypeNumber:
		return rules.WholeNumber(math.Float64frombits(t.Bits))
	}
	return 0, false
}

// httpStatus returns the HTTP response status of the selected span, or 0 if the span has none.
func (a *attributes) httpStatus() uint32 {
	t := a.tag(labelHTTPStatus, labelOldHTTPStatus)
	if t == nil {
		return 0
	}
	code, ok := a.integer(t)
	if !ok {
		return 0
	}
	return rules.StatusOf(code)
}

// grpcStatus returns the gRPC status of the selected span in decimal digits, or "" if it has no valid
// status. It ignores the attribute rpc.response.status_code unless the span is a gRPC call, because
// other RPC systems use the same attribute.
func (a *attributes) grpcStatus() string {
	if t := a.tag(labelGRPCStatus); t != nil {
		return rules.ParseGRPCStatus(a.textOfTag(t))
	}
	if rules.CallsGRPC(a.text(labelRPCSystem), a.text(labelOldRPCSystem)) {
		return rules.ParseGRPCStatus(a.text(labelRPCStatus))
	}
	return ""
}

// serverAddress returns the attribute server.address of the selected span, which has the given kind. If
// the span does not have it, the result is its older form: net.host.name in server spans, and
// net.peer.name in others.
func (a *attributes) serverAddress(kind spantable.Kind) string {
	if kind == spantable.KindServer {
		return a.text(labelServerAddress, labelOldHostName)
	}
	return a.text(labelServerAddress, labelOldPeerName)
}
