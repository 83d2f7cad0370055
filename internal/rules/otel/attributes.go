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

// tag returns the tag of the first of the labels that the selected span has, or nil.
func (a *attributes) tag(labels ...spantable.Label) *spantable.Tag {
	for _, l := range labels {
		if a.selected.Set.Has(l) {
			return a.selected.Tag(&a.request.Table, l)
		}
	}
	return nil
}

// text returns the value of the first of the labels that the selected span has, of any type, as
// text.
func (a *attributes) text(labels ...spantable.Label) string {
	if t := a.tag(labels...); t != nil {
		return a.textOfTag(t)
	}
	return ""
}

// textOfTag returns the value of a tag as text.
func (a *attributes) textOfTag(t *spantable.Tag) string {
	if t.Value == spantable.IsText {
		return a.request.String(t.Text())
	}
	start := len(a.scratch)
	a.scratch = a.request.AppendValue(a.scratch, t)
	return spantable.View(a.scratch[start:])
}

// Value implements work.Span. For the messaging operation, an empty attribute falls back to the
// next name.
func (a *attributes) Value(attribute work.Attribute) string {
	labels := workAttributes[attribute]
	if attribute != work.MessagingOperation {
		return a.text(labels...)
	}
	if operation := a.text(labels[:2]...); operation != "" {
		return operation
	}
	return a.text(labels[2])
}

// integer returns a value as an integer. Text is parsed, and a float without a fraction is
// accepted.
func (a *attributes) integer(t *spantable.Tag) (int64, bool) {
	switch t.Value {
	case spantable.IsInteger:
		return int64(t.Bits), true
	case spantable.IsText:
		return rules.ParseStatus(a.request.String(t.Text()))
	case spantable.IsNumber:
		return rules.WholeNumber(math.Float64frombits(t.Bits))
	}
	return 0, false
}

// httpStatus returns the HTTP response status, or 0.
func (a *attributes) httpStatus() uint32 {
	if t := a.tag(labelHTTPStatus, labelOldHTTPStatus); t != nil {
		if code, ok := a.integer(t); ok {
			return rules.StatusOf(code)
		}
	}
	return 0
}

// grpcStatus returns the gRPC status, or an empty string. The current attribute is read only if the
// call is a gRPC call, because other RPC systems use it too.
func (a *attributes) grpcStatus() string {
	l := labelGRPCStatus
	if a.tag(labelGRPCStatus) == nil && rules.CallsGRPC(a.text(labelRPCSystem), a.text(labelOldRPCSystem)) {
		l = labelRPCStatus
	}
	return rules.ParseGRPCStatus(a.text(l))
}

// serverAddress returns the server's name. For spans without server.address, it is the older
// attribute for the peer of a client, or for the host of a server.
func (a *attributes) serverAddress(kind spantable.Kind) string {
	if kind == spantable.KindServer {
		return a.text(labelServerAddress, labelOldHostName)
	}
	return a.text(labelServerAddress, labelOldPeerName)
}
