package main

import (
	"encoding/binary"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// nested appends a length-delimited protobuf field: an embedded message or a string.
func nested(b []byte, field protowire.Number, message []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), message)
}

// attribute returns a KeyValue with a string.
func attribute(key, value string) []byte {
	return nested(nested(nil, 1, []byte(key)), 2, nested(nil, 1, []byte(value)))
}

// protobuf encodes the spans as an ExportTraceServiceRequest.
func (s *spans) protobuf() []byte {
	var scope []byte
	for _, span := range s.all {
		id := binary.BigEndian.AppendUint64(nil, span.id)
		b := nested(nil, 1, append(make([]byte, 8), binary.BigEndian.AppendUint64(nil, span.trace)...))
		b = nested(b, 2, id)
		if !span.isRoot() {
			b = nested(b, 4, binary.BigEndian.AppendUint64(nil, span.root))
		}
		b = nested(b, 5, []byte(span.resource))
		b = protowire.AppendVarint(protowire.AppendTag(b, 6, protowire.VarintType), 3-bit(span.isRoot()))
		b = protowire.AppendFixed64(protowire.AppendTag(b, 7, protowire.Fixed64Type), uint64(span.start))
		b = protowire.AppendFixed64(protowire.AppendTag(b, 8, protowire.Fixed64Type),
			uint64(span.start+span.duration))
		if span.failed {
			b = nested(b, 15, protowire.AppendVarint(protowire.AppendTag(nil, 3, protowire.VarintType), 2))
		}
		scope = nested(scope, 2, b)
	}
	resource := nested(nested(nil, 1, attribute("service.name", s.service)), 1,
		attribute("deployment.environment.name", s.service))
	return nested(nil, 1, nested(nested(nil, 1, resource), 2, scope))
}

// json encodes the same request as JSON.
func (s *spans) json() []byte {
	b := fmt.Appendf(nil, `{"resourceSpans":[{"resource":{"attributes":[`+
		`{"key":"service.name","value":{"stringValue":%q}},`+
		`{"key":"deployment.environment.name","value":{"stringValue":%q}}]},"scopeSpans":[{"spans":[`,
		s.service, s.service)
	for i, span := range s.all {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"traceId":"%032x","spanId":"%016x","name":%q,"kind":%d,`+
			`"startTimeUnixNano":"%d","endTimeUnixNano":"%d"`, span.trace, span.id, span.resource,
			3-bit(span.isRoot()), span.start, span.start+span.duration)
		if !span.isRoot() {
			b = fmt.Appendf(b, `,"parentSpanId":"%016x"`, span.root)
		}
		if span.failed {
			b = append(b, `,"status":{"code":2}`...)
		}
		b = append(b, '}')
	}
	return append(b, `]}]}]}`...)
}
