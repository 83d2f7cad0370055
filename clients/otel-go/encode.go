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

// Numbers of the fields of OTLP messages, as in the .proto files of OpenTelemetry.
const (
	fieldRequestResourceSpans protolite.Number = 1

	fieldResourceSpansResource   protolite.Number = 1
	fieldResourceSpansScopeSpans protolite.Number = 2

	fieldScopeSpansSpans protolite.Number = 2

	fieldResourceAttributes protolite.Number = 1

	fieldSpanParentSpanID protolite.Number = 4
	fieldSpanName         protolite.Number = 5
	fieldSpanKind         protolite.Number = 6
	fieldSpanStartTime    protolite.Number = 7
	fieldSpanEndTime      protolite.Number = 8
	fieldSpanAttributes   protolite.Number = 9
	fieldSpanStatus       protolite.Number = 15

	fieldStatusCode protolite.Number = 3

	fieldKeyValueKey   protolite.Number = 1
	fieldKeyValueValue protolite.Number = 2

	fieldAnyValueString protolite.Number = 1
	fieldAnyValueBool   protolite.Number = 2
	fieldAnyValueInt    protolite.Number = 3
	fieldAnyValueDouble protolite.Number = 4
	fieldAnyValueArray  protolite.Number = 5
)

// spanEncoder encodes spans as OTLP trace requests, with only the fields that the daemon's rules read.
type spanEncoder struct {
	resource []byte                      // encoded Resource message
	isRead   func(attribute string) bool // reports whether the rules read an attribute of a span
	span     []byte                      // memory for the Span message
	request  []byte                      // memory for the request
}

// encode returns an OTLP trace request with one span. The request is valid until the next call.
func (e *spanEncoder) encode(s sdktrace.ReadOnlySpan) []byte {
	b := e.span[:0]
	if parent := s.Parent().SpanID(); parent.IsValid() {
		b = protolite.AppendBytes(b, fieldSpanParentSpanID, parent[:])
	}
	b = protolite.AppendBytes(b, fieldSpanName, truncate(s.Name()))
	b = protolite.AppendVarint(b, fieldSpanKind, uint64(s.SpanKind()))
	b = protolite.AppendFixed64(b, fieldSpanStartTime, uint64(s.StartTime().UnixNano()))
	b = protolite.AppendFixed64(b, fieldSpanEndTime, uint64(s.EndTime().UnixNano()))
	b = appendAttributes(b, fieldSpanAttributes, s.Attributes(), e.isRead)
	b = appendStatus(b, s.Status().Code)
	e.span = b
	return e.wrapSpan(b)
}

// wrapSpan returns an OTLP trace request that contains the encoded span.
func (e *spanEncoder) wrapSpan(encodedSpan []byte) []byte {
	scopeSpansSize := protolite.FieldSize(len(encodedSpan))
	resourceSpansSize := protolite.FieldSize(len(e.resource)) + protolite.FieldSize(scopeSpansSize)
	b := protolite.AppendHead(e.request[:0], fieldRequestResourceSpans, resourceSpansSize)
	b = protolite.AppendBytes(b, fieldResourceSpansResource, e.resource)
	b = protolite.AppendHead(b, fieldResourceSpansScopeSpans, scopeSpansSize)
	b = protolite.AppendBytes(b, fieldScopeSpansSpans, encodedSpan)
	e.request = b
	return b
}

// appendStatus appends the Status message of a span. It appends nothing if the status is not set.
func appendStatus(b []byte, code codes.Code) []byte {
	var otlpCode uint64
	switch code {
	case codes.Ok:
		otlpCode = 1
	case codes.Error:
		otlpCode = 2
	default:
		return b
	}
	const statusSize = 2 // tag and value of the code
	b = protolite.AppendHead(b, fieldSpanStatus, statusSize)
	return protolite.AppendVarint(b, fieldStatusCode, otlpCode)
}

// encodeResource returns the OTLP message of a resource.
func encodeResource(res *resource.Resource) []byte {
	return appendAttributes(nil, fieldResourceAttributes, res.Attributes(), func(string) bool { return true })
}

// encodeForSpans returns the OTLP message of a resource with only the attributes that determine labels of spans.
func encodeForSpans(res *resource.Resource) []byte {
	return appendAttributes(nil, fieldResourceAttributes, res.Attributes(), func(name string) bool {
		return name == "service.name" || name == "telemetry.sdk.language"
	})
}

// appendAttributes appends each attribute for which isWanted returns true, as a KeyValue message in the given field.
func appendAttributes(
	b []byte, field protolite.Number, attributes []attribute.KeyValue, isWanted func(name string) bool,
) []byte {
	for i := range attributes {
		name := string(attributes[i].Key)
		if !isWanted(name) {
			continue
		}
		value := attributes[i].Value
		valueSize := sizeOfValue(value)
		keyValueSize := protolite.FieldSize(len(name)) + protolite.FieldSize(valueSize)
		b = protolite.AppendHead(b, field, keyValueSize)
		b = protolite.AppendBytes(b, fieldKeyValueKey, name)
		b = protolite.AppendHead(b, fieldKeyValueValue, valueSize)
		b = appendValue(b, value)
	}
	return b
}

// sizeOfValue returns the number of bytes that appendValue appends for a value.
func sizeOfValue(v attribute.Value) int {
	if v.Type() == attribute.STRING {
		return protolite.FieldSize(len(truncate(v.AsString())))
	}
	var memory [16]byte // large enough for other types of values
	return len(appendValue(memory[:0], v))
}

// appendValue appends an attribute value as the field of an OTLP AnyValue message. It encodes lists and maps as an
// empty list, because the labels of a span do not depend on them.
func appendValue(b []byte, v attribute.Value) []byte {
	switch v.Type() {
	case attribute.STRING:
		return protolite.AppendBytes(b, fieldAnyValueString, truncate(v.AsString()))
	case attribute.BOOL:
		number := uint64(0)
		if v.AsBool() {
			number = 1
		}
		return protolite.AppendVarint(b, fieldAnyValueBool, number)
	case attribute.INT64:
		return protolite.AppendVarint(b, fieldAnyValueInt, uint64(v.AsInt64()))
	case attribute.FLOAT64:
		return protolite.AppendDouble(b, fieldAnyValueDouble, v.AsFloat64())
	}
	return protolite.AppendHead(b, fieldAnyValueArray, 0)
}

// truncate returns the first maxText bytes of a text.
func truncate(text string) string { return text[:min(len(text), maxText)] }
