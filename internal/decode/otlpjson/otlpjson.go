// Package otlpjson turns a request with traces that is written as OTLP/JSON into the same
// request in protobuf, which package otlp decodes. So there is one decoder of spans.
//
// # Reading and writing
//
// FromJSON steps through the body once, and writes each field as soon as it has read it. What
// a name stands for says a table of messages (messages.go). It reads what the specification
// has: names in lowerCamelCase, ids in hexadecimal, integers of 64 bits as text or as numbers,
// enumerations as numbers. It skips a name that it does not know.
//
// Everything else of a body must be JSON as RFC 8259 has it, and no name may be repeated into
// something that protobuf has no list for. What is wrong in one place fails the whole body.
//
// # Bounds
//
// What is nested deeper than MaxDepth is stepped over, as deep as it is, and written as an empty list.
// What is written of a body in UTF-8 is no longer than ProtobufBytes says, and nothing is allocated
// where there is room for it.
//
// # Threading
//
// FromJSON has no state: any goroutine may call it.
package otlpjson

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/spanstatsd/spanstatsd/internal/decode/jsonscan"
	"google.golang.org/protobuf/encoding/protowire"
)

// MaxDepth is how deep messages are nested that are written: somewhat deeper than what package otlp
// looks at. A list that is deeper is empty.
const MaxDepth = 72

// FromJSON appends the protobuf of a request. With an error it appends nothing.
func FromJSON(dst, body []byte) ([]byte, error) {
	r := reader{Scanner: jsonscan.Scanner{Body: body}, written: dst}
	if err := r.request(); err != nil {
		return dst, fmt.Errorf("read spans in JSON at byte %d: %w", r.At, err)
	}
	return r.written, nil
}

func (r *reader) request() error {
	if r.Next() != '{' {
		return errShape
	}
	if err := r.message(requestFields, 0); err != nil {
		return err
	}
	if r.Next(); r.At < len(r.Body) {
		return errFollow
	}
	return nil
}

// message writes the fields of a message, which begins here.
func (r *reader) message(of fields, depth int) error {
	return r.Each('}', func() error {
		name, err := r.Name()
		if err != nil {
			return err
		}
		if f := of.named(r.plain(name)); f != nil {
			return r.field(f, depth)
		}
		r.written, err = r.Skip(r.written)
		return err
	})
}

// field writes a field: a value, a list of them, or null.
func (r *reader) field(f *field, depth int) error {
	switch r.Next() {
	case 'n':
		return r.Word("null")
	case '[':
	default:
		return r.value(f, depth)
	}
	if f.form != asMessage && f.form != asText {
		return errShape // no other field is a list
	}
	return r.Each(']', func() error { return r.value(f, depth) })
}

// value writes one value, and before it the field's tag.
func (r *reader) value(f *field, depth int) error {
	switch f.form {
	case asBool:
		return r.boolean(f)
	case asVarint64, asVarint32, asFixed64, asFixed32, asDouble:
		return r.numeric(f)
	case asMessage:
	default:
		return r.textual(f)
	}
	if r.Next() != '{' {
		return errShape
	}
	begin := r.open(f)
	if depth == MaxDepth {
		var err error
		r.written, err = r.Skip(r.written) // it is a list in lists, which says nothing to anybody
		return err
	}
	if err := r.message(*f.of, depth+1); err != nil {
		return err
	}
	r.close(begin)
	return nil
}

// textual writes a text, an id or bytes.
func (r *reader) textual(f *field) error {
	if r.Next() != '"' {
		return errShape
	}
	text, err := r.Text()
	if err != nil {
		return err
	}
	begin := r.open(f)
	switch f.form {
	case asHex:
		r.written, err = hex.AppendDecode(r.written, r.plain(text))
	case asBase64:
		said := r.plain(text)
		if !text.IsPlain {
			said = slices.Clone(said) // base64 does not say that it decodes in place
		}
		r.written, err = base64.StdEncoding.AppendDecode(r.written, said)
	default:
		r.written = text.AppendTo(r.written)
	}
	r.close(begin)
	return err
}

func (r *reader) boolean(f *field) error {
	word, isTrue := "false", r.Next() == 't'
	if isTrue {
		word = "true"
	} else if r.Next() != 'f' {
		return errShape
	}
	r.tag(f, protowire.VarintType)
	r.written = protowire.AppendVarint(r.written, protowire.EncodeBool(isTrue))
	return r.Word(word)
}

// numeric writes a number, which may stand as text.
func (r *reader) numeric(f *field) error {
	said, err := r.numeral()
	if err != nil {
		return err
	}
	read := jsonscan.Integer
	if f.form == asDouble {
		read = double
	}
	n, isOne := read(said)
	if !isOne {
		return errShape
	}
	switch f.form {
	case asVarint64:
		r.tag(f, protowire.VarintType)
		r.written = protowire.AppendVarint(r.written, n)
	case asVarint32: // without the sign's upper half, which would be longer than what was said
		r.tag(f, protowire.VarintType)
		r.written = protowire.AppendVarint(r.written, uint64(uint32(n)))
	case asFixed32:
		r.tag(f, protowire.Fixed32Type)
		r.written = protowire.AppendFixed32(r.written, uint32(n))
	default:
		r.tag(f, protowire.Fixed64Type)
		r.written = protowire.AppendFixed64(r.written, n)
	}
	return nil
}

// numeral is the text of a number.
func (r *reader) numeral() ([]byte, error) {
	switch c := r.Next(); {
	case c == '"':
		text, err := r.Text()
		return r.plain(text), err
	case c == '-' || '0' <= c && c <= '9':
		return r.Number()
	}
	return nil, errShape
}

// double reads a number, which may be infinite or none, as its bits.
func double(said []byte) (uint64, bool) {
	n, err := strconv.ParseFloat(string(said), 64)
	return math.Float64bits(n), err == nil
}

// ProtobufBytes is how long the protobuf of so many bytes of JSON may be. It is shorter, since
// names become numbers, but for lists of texts: of an element two quotes and a comma become a
// number and a length, and the length of 16 KiB or more has at least three bytes.
func ProtobufBytes(json int) int { return json + json>>14 }

// reader reads a request, and writes each field as soon as it is read.
type reader struct {
	jsonscan.Scanner
	written []byte
}

var (
	errShape  = errors.New("a value is not what its name says: see the JSON encoding of OTLP")
	errFollow = errors.New("something follows the request")
)

// plain is what a text says: of the body, or where that has escapes, behind what is written,
// until more is written there.
func (r *reader) plain(t jsonscan.Quoted) []byte {
	if t.IsPlain {
		return t.Raw
	}
	end := len(r.written)
	written := t.AppendTo(r.written)
	r.written = written[:end]
	return written[end:]
}

// tag writes a field's tag.
func (r *reader) tag(f *field, as protowire.Type) {
	r.written = protowire.AppendTag(r.written, f.number, as)
}

// open begins a field whose length shows when all of it is written, close writes the length.
// There is room for one byte of it. For more, what the field holds moves, once for each message
// around it, of which there are MaxDepth at most.
func (r *reader) open(f *field) (begin int) {
	r.tag(f, protowire.BytesType)
	r.written = append(r.written, 0)
	return len(r.written)
}

func (r *reader) close(begin int) {
	var room [10]byte
	length := protowire.AppendVarint(room[:0], uint64(len(r.written)-begin))
	r.written[begin-1] = length[0]
	if rest := length[1:]; len(rest) > 0 {
		r.written = slices.Insert(r.written, begin, rest...)
	}
}

// form is how a field's value stands in JSON, and in protobuf.
type form uint8

const (
	asText     form = iota
	asHex           // an id, as hexadecimal digits
	asBase64        // any other bytes
	asBool          //
	asVarint64      // an integer of 64 bits
	asVarint32      // an enumeration, or a count
	asFixed64       // an integer of 64 bits
	asFixed32       // an integer of 32 bits
	asDouble        //
	asMessage       // of a kind of its own
)

// field is a field of a message. Whether it is a list shows in what stands there.
type field struct {
	name   string
	number protowire.Number
	form   form
	of     *fields
}

// fields are the fields of a message. They are few, so one is looked for from the first to
// the last.
type fields []field

// named is the field of a name, or nil.
func (fields fields) named(name []byte) *field {
	for i := range fields {
		if string(name) == fields[i].name {
			return &fields[i]
		}
	}
	return nil
}

// The messages of a request with traces. An attribute's value may hold more of its kind, so
// those are connected when all are there.
var (
	valueFields     fields
	attributeFields = fields{{"key", 1, asText, nil}, {"value", 2, asMessage, &valueFields}}
	arrayFields     = fields{{"values", 1, asMessage, &valueFields}}
	listFields      = fields{{"values", 1, asMessage, &attributeFields}}
	eventFields     = fields{
		{"timeUnixNano", 1, asFixed64, nil},
		{"name", 2, asText, nil},
		{"attributes", 3, asMessage, &attributeFields},
		{"droppedAttributesCount", 4, asVarint32, nil},
	}
	linkFields = fields{
		{"traceId", 1, asHex, nil},
		{"spanId", 2, asHex, nil},
		{"traceState", 3, asText, nil},
		{"attributes", 4, asMessage, &attributeFields},
		{"droppedAttributesCount", 5, asVarint32, nil},
		{"flags", 6, asFixed32, nil},
	}
	statusFields = fields{{"message", 2, asText, nil}, {"code", 3, asVarint32, nil}}
	spanFields   = fields{
		{"traceId", 1, asHex, nil},
		{"spanId", 2, asHex, nil},
		{"traceState", 3, asText, nil},
		{"parentSpanId", 4, asHex, nil},
		{"name", 5, asText, nil},
		{"kind", 6, asVarint32, nil},
		{"startTimeUnixNano", 7, asFixed64, nil},
		{"endTimeUnixNano", 8, asFixed64, nil},
		{"attributes", 9, asMessage, &attributeFields},
		{"droppedAttributesCount", 10, asVarint32, nil},
		{"events", 11, asMessage, &eventFields},
		{"droppedEventsCount", 12, asVarint32, nil},
		{"links", 13, asMessage, &linkFields},
		{"droppedLinksCount", 14, asVarint32, nil},
		{"status", 15, asMessage, &statusFields},
		{"flags", 16, asFixed32, nil},
	}
	scopeFields = fields{
		{"name", 1, asText, nil},
		{"version", 2, asText, nil},
		{"attributes", 3, asMessage, &attributeFields},
		{"droppedAttributesCount", 4, asVarint32, nil},
	}
	scopeSpansFields = fields{
		{"scope", 1, asMessage, &scopeFields},
		{"spans", 2, asMessage, &spanFields},
		{"schemaUrl", 3, asText, nil},
	}
	entityFields = fields{
		{"schemaUrl", 1, asText, nil},
		{"type", 2, asText, nil},
		{"idKeys", 3, asText, nil},
		{"descriptionKeys", 4, asText, nil},
	}
	resourceFields = fields{
		{"attributes", 1, asMessage, &attributeFields},
		{"droppedAttributesCount", 2, asVarint32, nil},
		{"entityRefs", 3, asMessage, &entityFields},
	}
	resourceSpansFields = fields{
		{"resource", 1, asMessage, &resourceFields},
		{"scopeSpans", 2, asMessage, &scopeSpansFields},
		{"schemaUrl", 3, asText, nil},
	}
	requestFields = fields{{"resourceSpans", 1, asMessage, &resourceSpansFields}}
)

func init() {
	valueFields = fields{
		{"stringValue", 1, asText, nil},
		{"boolValue", 2, asBool, nil},
		{"intValue", 3, asVarint64, nil},
		{"doubleValue", 4, asDouble, nil},
		{"arrayValue", 5, asMessage, &arrayFields},
		{"kvlistValue", 6, asMessage, &listFields},
		{"bytesValue", 7, asBase64, nil},
	}
}
