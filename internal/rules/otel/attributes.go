package otel

import (
	"math"

	"github.com/spanstatsd/spanstatsd/client/rules"
	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	"github.com/spanstatsd/spanstatsd/internal/rules/work"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// attributes are those of the span whose key is being made.
type attributes struct {
	request  otlp.Request
	selected spantable.Selected
	scratch  []byte // texts that do not stand in the body as they must be
}

// tag is the span's first tag of some labels, nil where it has none.
func (a *attributes) tag(labels ...spantable.Label) *spantable.Tag {
	for _, l := range labels {
		if a.selected.Set.Has(l) {
			return a.selected.Tag(&a.request.Table, l)
		}
	}
	return nil
}

// text is the value of the first tag of some labels as text, whatever it was written as.
func (a *attributes) text(labels ...spantable.Label) string {
	t := a.tag(labels...)
	switch {
	case t == nil:
		return ""
	case t.Value == spantable.IsText:
		return a.request.String(t.Text())
	}
	start := len(a.scratch)
	a.scratch = a.request.AppendValue(a.scratch, t)
	return spantable.View(a.scratch[start:])
}

// Value implements work.Span. A messaging operation may be empty under one name and not under another.
func (a *attributes) Value(attribute work.Attribute) string {
	labels := workAttributes[attribute]
	if attribute != work.MessagingOperation {
		return a.text(labels...)
	}
	if done := a.text(labels[:2]...); done != "" {
		return done
	}
	return a.text(labels[2])
}

// whole is a value as a whole number, also from text.
func (a *attributes) whole(t *spantable.Tag) (int64, bool) {
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

// httpStatus is the status of a response over HTTP, 0 where there is none.
func (a *attributes) httpStatus() uint32 {
	if t := a.tag(labelHTTPStatus, labelOldHTTPStatus); t != nil {
		if code, ok := a.whole(t); ok {
			return rules.StatusOf(code)
		}
	}
	return 0
}

// grpcStatus is the status of a call by gRPC, empty where there is none. Other systems have
// statuses under the present name too.
func (a *attributes) grpcStatus() string {
	l := labelGRPCStatus
	if a.tag(labelGRPCStatus) == nil && rules.CallsGRPC(a.text(labelRPCSystem), a.text(labelOldRPCSystem)) {
		l = labelRPCStatus
	}
	return rules.ParseGRPCStatus(a.text(l))
}

// serverAddress is the server's name. Before there was an attribute for it, a client named its
// peer and a server itself.
func (a *attributes) serverAddress(kind spantable.Kind) string {
	if kind == spantable.KindServer {
		return a.text(labelServerAddress, labelOldHostName)
	}
	return a.text(labelServerAddress, labelOldPeerName)
}
