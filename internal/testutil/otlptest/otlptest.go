// Package otlptest writes requests of OTLP for tests, as SDKs write them and as none does: with
// any attributes, kinds and codes, with fields that nobody knows, and made of what costs most of
// whoever reads them. It shares no code with the decoder, which it is written to try, and knows
// the numbers of the fields by itself. It owns no state: any goroutine may call it, but for MemoryInUse,
// which looks at the memory of the whole process.
package otlptest

import (
	"encoding/binary"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// Attribute is a name, and a string, an int, a float64, a bool, or a value that is written
// already.
type Attribute [2]any

// Span is a span. Its kind and the code of its status are written as they are.
type Span struct {
	Trace      uint64 // the last eight bytes of its id
	ID, Parent uint64
	State      string
	Name       string
	Kind       spantable.Kind
	Start, End uint64
	Attributes []Attribute
	Code       int    // less than 0 where there is no status
	More       []byte // fields behind its own
}

// The codes of a status.
const (
	OK    = 1
	Error = 2
)

// Resource is what sent spans, by their scopes.
type Resource struct {
	Attributes []Attribute
	Scopes     [][]Span
}

// Field appends a field with a message or a text in it.
func Field(b []byte, number protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), content)
}

// Varint appends a field with a number in it.
func Varint(b []byte, number protowire.Number, n uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), n)
}

// Fixed appends a field with a number of 64 bits in it.
func Fixed(b []byte, number protowire.Number, n uint64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, number, protowire.Fixed64Type), n)
}

// Encode writes an attribute.
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

// Encode writes a span.
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

// Request is the body of a request.
func Request(resources ...Resource) (body []byte) {
	for _, r := range resources {
		var said []byte
		for _, a := range r.Attributes {
			said = Field(said, 1, a.Encode())
		}
		content := Field(nil, 1, said)
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
