// Package otlpjson converts the traces of an OTLP request from JSON to protobuf, so that package otlp
// can decode them.
//
// FromJSON parses the request in one pass, and writes each field as soon as it has read it. Tables at
// the end of otlpjson.go list the fields of each message by name. As OTLP specifies, names are in
// lowerCamelCase, IDs are hexadecimal, 64-bit integers are strings or numbers, and enums are numbers.
// Unknown names are skipped. FromJSON rejects a request if any part of it is not valid JSON, or if a
// value has the wrong type.
//
// Messages that are nested deeper than MaxDepth are skipped, and written as empty messages. If the
// request is UTF-8, its protobuf is at most as long as ProtobufBytes returns; FromJSON does not allocate
// if dst has that capacity. It has no state and can be called concurrently.
package otlpjson

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/spanstatsd/spanstatsd/internal/decode/jsonscan"
	"google.golang.org/protobuf/encoding/protowire"
)

// MaxDepth is the maximum nesting of messages that are converted. It is greater than the depth that
// package otlp validates.
const MaxDepth = 72

// ProtobufBytes returns the maximum length of the protobuf for jsonLen bytes of JSON. Protobuf is
// usually shorter, because it has numbers instead of names. Only a string of 16 KiB or more in a list
// can be longer: its tag and length take at least four bytes, and the quotes and the comma in JSON take
// three.
func ProtobufBytes(jsonLen int) int {
	const longString = 16 << 10
	maxLongStrings := jsonLen / longString
	return jsonLen + maxLongStrings
}

var (
	errType     = errors.New("a value has the wrong type for its field; see the JSON encoding of OTLP")
	errTrailing = errors.New("unexpected data after the request")
)

// FromJSON appends the protobuf of a JSON request to dst. If it returns an error, dst is unchanged.
func FromJSON(dst, body []byte) ([]byte, error) {
	c := converter{Scanner: jsonscan.Scanner{Body: body}, out: dst}
	if err := c.convertRequest(); err != nil {
		return dst, fmt.Errorf("read spans in JSON at byte %d: %w", c.Pos, err)
	}
	return c.out, nil
}

// converter reads JSON from a Scanner and appends protobuf to out.
type converter struct {
	jsonscan.Scanner
	out []byte
}

func (c *converter) convertRequest() error {
	if c.Peek() != '{' {
		return errType
	}
	if err := c.convertMessage(requestFields, 0); err != nil {
		return err
	}
	if c.Peek(); c.Pos < len(c.Body) {
		return errTrailing
	}
	return nil
}

// convertMessage reads a JSON object and appends it to c.out as a protobuf message with the given
// fields. The next byte must be the opening bracket. Values with names that are not in fields are
// skipped. depth is the number of messages that contain this one.
func (c *converter) convertMessage(fields messageFields, depth int) error {
	return c.EachElement('}', func() error {
		name, err := c.ReadName()
		if err != nil {
			return err
		}
		f := fields.find(c.unescape(name))
		if f == nil {
			return c.discardValue()
		}
		return c.convertField(f, depth)
	})
}

// discardValue reads a JSON value of any type and writes nothing. The scanner stores temporary data in the
// free capacity of c.out.
func (c *converter) discardValue() (err error) {
	c.out, err = c.SkipValue(c.out)
	return err
}

// convertField reads the JSON value of the field f and appends the field to c.out, encoded as protobuf.
// It appends one field for each element of an array, and nothing for null. depth is the number of
// messages that contain the field.
func (c *converter) convertField(f *field, depth int) error {
	firstByte := c.Peek()
	isNull := firstByte == 'n'
	if isNull {
		return c.ReadLiteral("null")
	}
	isArray := firstByte == '['
	if !isArray {
		return c.convertValue(f, depth)
	}
	canBeRepeated := f.encoding == asMessage || f.encoding == asString
	if !canBeRepeated {
		return errType
	}
	return c.EachElement(']', func() error { return c.convertValue(f, depth) })
}

// convertValue reads one value of a field, and writes the tag of the field and the value.
func (c *converter) convertValue(f *field, depth int) error {
	switch f.encoding {
	case asBool:
		return c.convertBool(f)
	case asVarint64, asVarint32, asFixed64, asFixed32, asDouble:
		return c.convertNumber(f)
	case asMessage:
		return c.convertSubmessage(f, depth)
	default:
		return c.convertString(f)
	}
}

// convertSubmessage reads a JSON object and appends it to c.out as the protobuf field f, which contains
// a message. depth is the number of messages that contain the field. If it is MaxDepth, the content of
// the object is skipped, and the message is empty.
func (c *converter) convertSubmessage(f *field, depth int) error {
	if c.Peek() != '{' {
		return errType
	}
	start := c.beginLengthPrefixed(f)
	var err error
	if depth == MaxDepth {
		err = c.discardValue()
	} else {
		err = c.convertMessage(*f.fields, depth+1)
	}
	if err != nil {
		return err
	}
	c.endLengthPrefixed(start)
	return nil
}

// convertString reads a JSON string and appends it to c.out as the protobuf field f. If the field
// contains bytes, the string is their hexadecimal or base64 encoding, which convertString decodes.
func (c *converter) convertString(f *field) error {
	if c.Peek() != '"' {
		return errType
	}
	text, err := c.ReadString()
	if err != nil {
		return err
	}
	start := c.beginLengthPrefixed(f)
	switch f.encoding {
	case asHex:
		c.out, err = hex.AppendDecode(c.out, c.unescape(text))
	case asBase64:
		err = c.appendBase64(text)
	default:
		c.out = text.AppendTo(c.out)
	}
	c.endLengthPrefixed(start)
	return err
}

// appendBase64 decodes a base64 string and appends the bytes to c.out.
func (c *converter) appendBase64(text jsonscan.String) (err error) {
	encoded := c.unescape(text)
	if !text.IsPlain {
		encoded = slices.Clone(encoded) // base64 does not guarantee that it can decode in place
	}
	c.out, err = base64.StdEncoding.AppendDecode(c.out, encoded)
	return err
}

func (c *converter) convertBool(f *field) error {
	literal, value := "false", c.Peek() == 't'
	if value {
		literal = "true"
	} else if c.Peek() != 'f' {
		return errType
	}
	c.writeTag(f, protowire.VarintType)
	c.out = protowire.AppendVarint(c.out, protowire.EncodeBool(value))
	return c.ReadLiteral(literal)
}

func (c *converter) convertNumber(f *field) error {
	text, err := c.readNumberText()
	if err != nil {
		return err
	}
	parse := jsonscan.ParseInteger
	if f.encoding == asDouble {
		parse = parseDouble
	}
	n, ok := parse(text)
	if !ok {
		return errType
	}
	switch f.encoding {
	case asVarint64:
		c.writeTag(f, protowire.VarintType)
		c.out = protowire.AppendVarint(c.out, n)
	case asVarint32: // sign extension would make negative numbers longer than their JSON
		c.writeTag(f, protowire.VarintType)
		c.out = protowire.AppendVarint(c.out, uint64(uint32(n)))
	case asFixed32:
		c.writeTag(f, protowire.Fixed32Type)
		c.out = protowire.AppendFixed32(c.out, uint32(n))
	default:
		c.writeTag(f, protowire.Fixed64Type)
		c.out = protowire.AppendFixed64(c.out, n)
	}
	return nil
}

// readNumberText reads a number, or a string that contains one, and returns its text.
func (c *converter) readNumberText() ([]byte, error) {
	firstByte := c.Peek()
	isString := firstByte == '"'
	isNumber := firstByte == '-' || '0' <= firstByte && firstByte <= '9'
	switch {
	case isString:
		text, err := c.ReadString()
		return c.unescape(text), err
	case isNumber:
		return c.ReadNumber()
	}
	return nil, errType
}

// parseDouble parses a number, NaN or an infinity, and returns its bits.
func parseDouble(text []byte) (bits uint64, ok bool) {
	n, err := strconv.ParseFloat(string(text), 64)
	return math.Float64bits(n), err == nil
}

// unescape returns the value of a JSON string, with escape sequences decoded. The value is valid until
// something is appended to c.out, because it can be stored in the free capacity of c.out.
func (c *converter) unescape(text jsonscan.String) []byte {
	if text.IsPlain {
		return text.Raw
	}
	end := len(c.out)
	extended := text.AppendTo(c.out)
	c.out = extended[:end] // without the value, but with the larger memory
	value := extended[end:]
	return value
}

func (c *converter) writeTag(f *field, wireType protowire.Type) {
	c.out = protowire.AppendTag(c.out, f.number, wireType)
}

// beginLengthPrefixed starts a string, bytes or message field: it writes the tag and reserves one byte
// for the length of the content. It returns the position of the content. After the content, the caller
// must call endLengthPrefixed with this position.
func (c *converter) beginLengthPrefixed(f *field) (start int) {
	c.writeTag(f, protowire.BytesType)
	c.out = append(c.out, 0)
	return len(c.out)
}

// endLengthPrefixed completes a protobuf field with the content c.out[start:] by writing its length in
// front of it. One byte is reserved for the length; if it needs more, endLengthPrefixed moves the
// content.
func (c *converter) endLengthPrefixed(start int) {
	var buf [binary.MaxVarintLen64]byte
	contentLen := len(c.out) - start
	encodedLen := protowire.AppendVarint(buf[:0], uint64(contentLen))
	reserved := start - 1
	c.out[reserved] = encodedLen[0]
	if len(encodedLen) > 1 {
		c.out = slices.Insert(c.out, start, encodedLen[1:]...)
	}
}

// encoding is the type of a field in JSON and in protobuf.
type encoding uint8

const (
	asString encoding = iota
	asHex             // ID: hexadecimal string in JSON, bytes in protobuf
	asBase64          // other bytes
	asBool
	asVarint64 // 64-bit integer
	asVarint32 // enum or count
	asFixed64  // 64-bit integer
	asFixed32  // 32-bit integer
	asDouble
	asMessage
)

// field is a field of a message. Its JSON value shows whether it is repeated.
type field struct {
	name     string
	number   protowire.Number
	encoding encoding
	fields   *messageFields // fields of the submessage; nil for other encodings
}

// messageFields are the fields of a message.
type messageFields []field

// find returns the field with the given name, or nil if the message has no such field.
func (fields messageFields) find(name []byte) *field {
	for i := range fields {
		if string(name) == fields[i].name {
			return &fields[i]
		}
	}
	return nil
}

// Fields of the messages in a trace request. valueFields is set by init, because it refers to itself.
var (
	valueFields        messageFields
	attributeFields    = messageFields{{"key", 1, asString, nil}, {"value", 2, asMessage, &valueFields}}
	arrayFields        = messageFields{{"values", 1, asMessage, &valueFields}}
	keyValueListFields = messageFields{{"values", 1, asMessage, &attributeFields}}
	eventFields        = messageFields{
		{"timeUnixNano", 1, asFixed64, nil},
		{"name", 2, asString, nil},
		{"attributes", 3, asMessage, &attributeFields},
		{"droppedAttributesCount", 4, asVarint32, nil},
	}
	linkFields = messageFields{
		{"traceId", 1, asHex, nil},
		{"spanId", 2, asHex, nil},
		{"traceState", 3, asString, nil},
		{"attributes", 4, asMessage, &attributeFields},
		{"droppedAttributesCount", 5, asVarint32, nil},
		{"flags", 6, asFixed32, nil},
	}
	statusFields = messageFields{{"message", 2, asString, nil}, {"code", 3, asVarint32, nil}}
	spanFields   = messageFields{
		{"traceId", 1, asHex, nil},
		{"spanId", 2, asHex, nil},
		{"traceState", 3, asString, nil},
		{"parentSpanId", 4, asHex, nil},
		{"name", 5, asString, nil},
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
	scopeFields = messageFields{
		{"name", 1, asString, nil},
		{"version", 2, asString, nil},
		{"attributes", 3, asMessage, &attributeFields},
		{"droppedAttributesCount", 4, asVarint32, nil},
	}
	scopeSpansFields = messageFields{
		{"scope", 1, asMessage, &scopeFields},
		{"spans", 2, asMessage, &spanFields},
		{"schemaUrl", 3, asString, nil},
	}
	entityFields = messageFields{
		{"schemaUrl", 1, asString, nil},
		{"type", 2, asString, nil},
		{"idKeys", 3, asString, nil},
		{"descriptionKeys", 4, asString, nil},
	}
	resourceFields = messageFields{
		{"attributes", 1, asMessage, &attributeFields},
		{"droppedAttributesCount", 2, asVarint32, nil},
		{"entityRefs", 3, asMessage, &entityFields},
	}
	resourceSpansFields = messageFields{
		{"resource", 1, asMessage, &resourceFields},
		{"scopeSpans", 2, asMessage, &scopeSpansFields},
		{"schemaUrl", 3, asString, nil},
	}
	requestFields = messageFields{{"resourceSpans", 1, asMessage, &resourceSpansFields}}
)

func init() {
	valueFields = messageFields{
		{"stringValue", 1, asString, nil},
		{"boolValue", 2, asBool, nil},
		{"intValue", 3, asVarint64, nil},
		{"doubleValue", 4, asDouble, nil},
		{"arrayValue", 5, asMessage, &arrayFields},
		{"kvlistValue", 6, asMessage, &keyValueListFields},
		{"bytesValue", 7, asBase64, nil},
	}
}
