// Package otlptest encodes OTLP trace requests for tests: requests like those of SDKs, requests with
// unknown fields or unusual values, and requests that are expensive to decode. It shares no code with the
// decoder that it tests, and defines the field numbers itself.
//
// Concurrency: all functions are safe for concurrent use. MemoryInUse measures the whole process.
package otlptest

import (
	"encoding/binary"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// Attribute is a name, and a value of type string, int, float64 or bool, or the encoded bytes of a value.
type Attribute [2]any

// Span is a span. Kind and Code are encoded unchanged, even if they are invalid.
type Span struct {
	Trace      uint64 // last eight bytes of the trace ID
	ID, Parent uint64
	State      string
	Name       string
	Kind       spantable.Kind
	Start, End uint64
	Attributes []Attribute
	Code       int    // status code; negative to omit the status
	More       []byte // encoded fields to append
}

// Status codes.
const (
	OK    = 1
	Error = 2
)

// Resource is a resource with its spans, grouped by scope.
type Resource struct {
	Attributes []Attribute
	Scopes     [][]Span
}

// Field appends a field with a message, a string or bytes.
func Field(b []byte, number protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), content)
}

// Varint appends a field with an integer.
func Varint(b []byte, number protowire.Number, n uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), n)
}

// Fixed appends a field with a fixed-width number of 64 bits.
func Fixed(b []byte, number protowire.Number, n uint64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, number, protowire.Fixed64Type), n)
}

// Encode returns the attribute as a KeyValue message.
func (a Attribute) Encode() []byte {
	var value []byte
	switch v := a[1].(type) {
	case string:
		value = Field(nil, 1, []byte(v))
	case bool:
		value = Varint(nil, 2, protowire.EncodeBool(v))
	case int:
		value = Varint(nil, 3, uint64(v))
	case float64:
		value = Fixed(nil, 4, math.Float64bits(v))
	case []byte:
		value = v
	}
	return Field(Field(nil, 1, []byte(a[0].(string))), 2, value)
}

// Encode returns the span as a Span message.
func (s Span) Encode() (b []byte) {
	id := func(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
	b = Field(Field(b, 1, append(id(0x0123456789abcdef), id(s.Trace)...)), 2, id(s.ID))
	if s.State != "" {
		b = Field(b, 3, []byte(s.State))
	}
	if s.Parent != 0 {
		b = Field(b, 4, id(s.Parent))
	}
	b = Varint(Field(b, 5, []byte(s.Name)), 6, uint64(s.Kind))
	b = Fixed(Fixed(b, 7, s.Start), 8, s.End)
	for _, a := range s.Attributes {
		b = Field(b, 9, a.Encode())
	}
	if s.Code >= 0 {
		b = Field(b, 15, Varint(nil, 3, uint64(s.Code)))
	}
	b = protowire.AppendFixed32(protowire.AppendTag(b, 16, protowire.Fixed32Type), 0x101)
	return append(b, s.More...)
}

// Request returns the body of a request with the given resources.
func Request(resources ...Resource) (body []byte) {
	for _, r := range resources {
		var attributes []byte
		for _, a := range r.Attributes {
			attributes = Field(attributes, 1, a.Encode())
		}
		content := Field(nil, 1, attributes)
		for _, spans := range r.Scopes {
			scope := Field(nil, 1, Field(nil, 1, []byte("io.opentelemetry.tomcat-10.0")))
			for _, s := range spans {
				scope = Field(scope, 2, s.Encode())
			}
			content = Field(content, 2, Field(scope, 3, []byte("https://opentelemetry.io/schemas/1.37.0")))
		}
		body = Field(body, 1, content)
	}
	return body
}
