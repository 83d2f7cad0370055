package spanstatsd

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/spanstatsd/spanstatsd/internal/wire/protolite"
)

// maxText is the maximum number of bytes that are encoded of a text. It is longer than any label.
const maxText = 8 << 10

// spanEncoder encodes spans as OTLP trace requests, with only the fields that the daemon's rules read.
type spanEncoder struct {
	resource []byte                      // encoded Resource message
	isRead   func(attribute string) bool // whether the rules read an attribute of a span
	span     []byte                      // memory for the Span message
	request  []byte                      // memory for the request
}

// encode returns a request with one span. It is valid until the next call.
func (e *spanEncoder) encode(s sdktrace.ReadOnlySpan) []byte {
	b := e.span[:0]
	if parent := s.Parent().SpanID(); parent.IsValid() {
		b = protolite.AppendBytes(b, 4, parent[:])
	}
	b = protolite.AppendBytes(b, 5, cut(s.Name()))
	b = protolite.AppendVarint(b, 6, uint64(s.SpanKind()))
	b = protolite.AppendFixed64(b, 7, uint64(s.StartTime().UnixNano()))
	b = protolite.AppendFixed64(b, 8, uint64(s.EndTime().UnixNano()))
	b = appendAttributes(b, 9, s.Attributes(), e.isRead)
	b = appendStatus(b, s.Status().Code)
	e.span = b
	return e.wrap(b)
}

// wrap returns a request with an encoded span.
func (e *spanEncoder) wrap(encodedSpan []byte) []byte {
	scopeSize := protolite.Size(len(encodedSpan))
	resourceSpansSize := protolite.Size(len(e.resource)) + protolite.Size(scopeSize)
	b := protolite.AppendHead(e.request[:0], 1, resourceSpansSize) // resource_spans of the request
	b = protolite.AppendBytes(b, 1, e.resource)                    // resource
	b = protolite.AppendHead(b, 2, scopeSize)                      // scope_spans
	e.request = protolite.AppendBytes(b, 2, encodedSpan)           // spans
	return e.request
}

// appendStatus appends the Status message of a span, whose numbers of codes differ from the SDK's.
func appendStatus(b []byte, code codes.Code) []byte {
	const ok, failed = 1, 2
	switch code {
	case codes.Ok:
		return append(protolite.AppendHead(b, 15, 2), 3<<3, ok)
	case codes.Error:
		return append(protolite.AppendHead(b, 15, 2), 3<<3, failed)
	}
	return b
}

// encodeResource returns the Resource message of a resource.
func encodeResource(res *resource.Resource) []byte {
	return appendAttributes(nil, 1, res.Attributes(), func(string) bool { return true })
}

// encodeForSpans returns the part of a Resource message that the labels of spans depend on.
func encodeForSpans(res *resource.Resource) []byte {
	return appendAttributes(nil, 1, res.Attributes(), func(name string) bool {
		return name == "service.name" || name == "telemetry.sdk.language"
	})
}

// appendAttributes appends the attributes that isWanted returns true for, as KeyValue messages in a field.
func appendAttributes(b []byte, field protolite.Number, all []attribute.KeyValue, isWanted func(name string) bool) []byte {
	for i := range all {
		name := string(all[i].Key)
		if !isWanted(name) {
			continue
		}
		value := all[i].Value
		size := sizeOfValue(value)
		b = protolite.AppendHead(b, field, protolite.Size(len(name))+protolite.Size(size))
		b = protolite.AppendBytes(b, 1, name)
		b = appendValue(protolite.AppendHead(b, 2, size), value)
	}
	return b
}

// sizeOfValue returns the number of bytes that appendValue appends.
func sizeOfValue(v attribute.Value) int {
	var memory [16]byte
	if v.Type() == attribute.STRING {
		return protolite.Size(len(cut(v.AsString())))
	}
	return len(appendValue(memory[:0], v))
}

// appendValue appends the content of an AnyValue message. A list or map becomes an empty list, because labels are
// made of other values only.
func appendValue(b []byte, v attribute.Value) []byte {
	switch v.Type() {
	case attribute.STRING:
		return protolite.AppendBytes(b, 1, cut(v.AsString()))
	case attribute.BOOL:
		if v.AsBool() {
			return protolite.AppendVarint(b, 2, 1)
		}
		return protolite.AppendVarint(b, 2, 0)
	case attribute.INT64:
		return protolite.AppendVarint(b, 3, uint64(v.AsInt64()))
	case attribute.FLOAT64:
		return protolite.AppendDouble(b, 4, v.AsFloat64())
	}
	return protolite.AppendHead(b, 5, 0)
}

// cut returns the part of a text that is encoded.
func cut(text string) string { return text[:min(len(text), maxText)] }
