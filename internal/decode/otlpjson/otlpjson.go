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
	c.convertRequest()
	if err := c.Err(); err != nil {
		return dst, fmt.Errorf("read spans in JSON at byte %d: %w", c.Pos, err)
	}
	return c.out, nil
}

// converter reads JSON from a Scanner and appends protobuf to out. The Scanner keeps the first error.
type converter struct {
	jsonscan.Scanner
	out []byte
}

func (c *converter) convertRequest() {
	if c.Peek() != '{' {
		c.Fail(errType)
		return
	}
	c.convertMessage(requestFields, 0)
	c.Peek() // skips white space
	hasTrailingData := c.Pos < len(c.Body)
	if hasTrailingData {
		c.Fail(errTrailing)
	}
}

// convertMessage reads a JSON object and appends it to c.out as a protobuf message with the given
// fields. The next byte must be the opening bracket. Values with names that are not in fields are
// skipped. depth is the number of messages that contain this one.
func (c *converter) convertMessage(fields messageFields, depth int) {
	c.Enter()
	expected := 0 // SDKs write most fields in the order of the tables
	for c.NextElement('}') {
		index := c.readFieldName(fields, expected)
		isUnknown := index < 0
		if isUnknown {
			c.skipValue()
			continue
		}
		c.convertField(&fields[index], depth)
		expected = index + 1
	}
}

// readFieldName reads the name of an object member. It returns the index of the field with this name, or
// -1 if there is no such field. It is fastest if the name is the one of fields[expected].
func (c *converter) readFieldName(fields messageFields, expected int) (index int) {
	for i := range fields {
		index = expected + i
		if index >= len(fields) {
			index -= len(fields) // continue with the first field
		}
		if c.AcceptName(fields[index].name) {
			return index
		}
	}
	name := c.unescape(c.ReadName())
	return fields.find(name)
}

// convertField reads the JSON value of the field f and appends the field to c.out, encoded as protobuf.
// It appends one field for each element of an array, and nothing for null. depth is the number of
// messages that contain the field.
func (c *converter) convertField(f *field, depth int) {
	firstByte := c.Peek()
	canBeRepeated := f.encoding == asMessage || f.encoding == asString
	switch {
	case firstByte == 'n':
		c.ReadLiteral("null")
	case firstByte == '[' && canBeRepeated:
		c.Enter()
		for c.NextElement(']') {
			c.convertValue(f, c.Peek(), depth)
		}
	default:
		c.convertValue(f, firstByte, depth)
	}
}

// convertValue reads one value of the field f, which starts with firstByte, and appends the field to
// c.out. It is an error if the value has another JSON type than the field. depth is the number of messages
// that contain the field.
func (c *converter) convertValue(f *field, firstByte byte, depth int) {
	isString := firstByte == '"'
	isDigit := '0' <= firstByte && firstByte <= '9'
	isNumber := isDigit || firstByte == '-'
	isBool := firstByte == 't' || firstByte == 'f'
	switch {
	case f.encoding == asMessage && firstByte == '{':
		c.convertSubmessage(f, depth)
	case f.encoding == asString && isString:
		c.convertString(f)
	case f.encoding.isBytes() && isString:
		c.convertBytes(f)
	case f.encoding.isNumber() && (isNumber || isString):
		c.convertNumber(f)
	case f.encoding == asBool && isBool:
		c.convertBool(f)
	default:
		c.Fail(errType)
	}
}

// convertSubmessage reads a JSON object and appends it to c.out as the protobuf field f, which contains
// a message. depth is the number of messages around the field. If it is MaxDepth, the content of the object is
// skipped, and the message is empty.
func (c *converter) convertSubmessage(f *field, depth int) {
	isAttribute := f.fields == &attributeFields
	valueDepth := depth + 1 // of the value, if the message is an attribute
	if isAttribute && valueDepth < MaxDepth {
		isConverted := c.convertCommonAttribute(f) // if false, nothing is read yet
		if isConverted {
			return
		}
	}
	start := c.beginLengthPrefixed(f)
	if depth == MaxDepth {
		c.skipValue()
	} else {
		c.convertMessage(*f.fields, depth+1)
	}
	c.endLengthPrefixed(start)
}

// convertCommonAttribute is a fast path of convertSubmessage for attributes as most SDKs write them, such
// as {"key":"http.route","value":{"stringValue":"/users"}}. The key comes first, the value is an ASCII
// text or an integer, and the protobuf has less than 128 bytes, so that each length takes one byte. For
// any other attribute, convertCommonAttribute does nothing and returns false.
func (c *converter) convertCommonAttribute(f *field) (isCommon bool) {
	const (
		keyTag   = 1<<3 | byte(protowire.BytesType)
		valueTag = 2<<3 | byte(protowire.BytesType)
		textTag  = 1<<3 | byte(protowire.BytesType)
		intTag   = 3<<3 | byte(protowire.VarintType)
	)
	// The converter stays unchanged until the end of the attribute is found.
	in := jsonscan.Scanner{Body: c.Body, Pos: c.Pos}
	out := c.out
	if !in.Accept(`{"key":`) {
		return false
	}
	key, isPlain := in.AcceptPlainString()
	if !isPlain || !in.Accept(`,"value":{`) {
		return false
	}
	out = append(out, byte(f.number)<<3|byte(protowire.BytesType), 0)
	start := len(out)
	out = append(out, keyTag, byte(len(key)))
	out = append(out, key...)
	out = append(out, valueTag, 0)
	valueStart := len(out)
	if in.Accept(`"stringValue":`) {
		var text []byte
		text, isCommon = in.AcceptPlainString()
		out = append(out, textTag, byte(len(text)))
		out = append(out, text...)
	} else if in.Accept(`"intValue":`) {
		var n uint64
		n, isCommon = in.AcceptInteger()
		out = protowire.AppendVarint(append(out, intTag), n)
	}
	length := len(out) - start
	if !isCommon || length > maxOneByteVarint || !in.Accept("}}") {
		return false
	}
	out[start-1] = byte(length)
	out[valueStart-1] = byte(len(out) - valueStart)
	c.Pos, c.out = in.Pos, out
	return true
}

// convertString reads a JSON string and appends it to c.out as the protobuf field f.
func (c *converter) convertString(f *field) {
	text := c.ReadString()
	start := c.beginLengthPrefixed(f)
	c.out = text.AppendTo(c.out)
	c.endLengthPrefixed(start)
}

// convertBytes reads a JSON string, the hexadecimal or base64 encoding of bytes, and appends the bytes to
// c.out as the protobuf field f.
func (c *converter) convertBytes(f *field) {
	text := c.ReadString()
	encoded := text.Raw
	if !text.IsPlain { // it has escape sequences, which SDKs don't write in bytes
		encoded = text.AppendTo(nil)
	}
	start := c.beginLengthPrefixed(f)
	var err error
	if f.encoding == asHex {
		c.out, err = hex.AppendDecode(c.out, encoded)
	} else {
		c.out, err = base64.StdEncoding.AppendDecode(c.out, encoded)
	}
	if err != nil {
		c.Fail(err)
	}
	c.endLengthPrefixed(start)
}

// convertBool reads true or false and appends it to c.out as the protobuf field f.
func (c *converter) convertBool(f *field) {
	if c.Accept("true") {
		c.writeBits(f, 1)
		return
	}
	c.ReadLiteral("false")
	c.writeBits(f, 0)
}

// convertNumber reads a number, or a string that contains one, and appends it to c.out as the protobuf
// field f.
func (c *converter) convertNumber(f *field) {
	if f.encoding == asDouble {
		n, err := strconv.ParseFloat(string(c.readNumberText()), 64)
		if err != nil {
			c.Fail(errType)
			return
		}
		c.writeBits(f, math.Float64bits(n))
		return
	}
	n, ok := c.AcceptInteger() // fast path
	if !ok {
		n, ok = jsonscan.ParseInteger(c.readNumberText())
	}
	if !ok {
		c.Fail(errType)
		return
	}
	c.writeBits(f, n)
}

// readNumberText reads a number, or a string that contains one, and returns its text.
func (c *converter) readNumberText() []byte {
	if c.Peek() == '"' {
		return c.unescape(c.ReadString())
	}
	return c.ReadNumber()
}

// skipValue skips the next value. SkipValue needs memory for that, and gets the unused capacity of c.out.
func (c *converter) skipValue() { c.out = c.SkipValue(c.out) }

// unescape returns the value of a JSON string, with escape sequences decoded. A value with escape sequences is stored
// in the unused capacity of c.out, so it is valid only until something is appended to c.out.
func (c *converter) unescape(text jsonscan.String) []byte {
	if text.IsPlain {
		return text.Raw
	}
	end := len(c.out)
	c.out = text.AppendTo(c.out)
	value := c.out[end:]
	c.out = c.out[:end]
	return value
}

// writeBits appends the protobuf field f with a number, given as an integer or as the bits of a float64.
func (c *converter) writeBits(f *field, bits uint64) {
	c.writeTag(f)
	switch f.encoding {
	case asVarint32: // sign extension would make negative numbers longer than their JSON
		c.writeVarint(uint64(uint32(bits)))
	case asFixed32:
		c.out = protowire.AppendFixed32(c.out, uint32(bits))
	case asFixed64, asDouble:
		c.out = protowire.AppendFixed64(c.out, bits)
	default:
		c.writeVarint(bits)
	}
}

func (c *converter) writeTag(f *field) {
	c.writeVarint(protowire.EncodeTag(f.number, wireTypes[f.encoding]))
}

// maxOneByteVarint is the largest number whose varint has one byte.
const maxOneByteVarint = 0x7f

// writeVarint appends v as a varint. Most numbers and tags take one byte, for which append is faster than
// AppendVarint.
func (c *converter) writeVarint(v uint64) {
	if v <= maxOneByteVarint {
		c.out = append(c.out, byte(v))
		return
	}
	c.out = protowire.AppendVarint(c.out, v)
}

// beginLengthPrefixed starts a string, bytes or message field: it writes the tag and reserves one byte
// for the length of the content. It returns the position of the content. After the content, the caller
// must call endLengthPrefixed with this position.
func (c *converter) beginLengthPrefixed(f *field) (start int) {
	c.writeTag(f)
	c.out = append(c.out, 0)
	return len(c.out)
}

// endLengthPrefixed completes a protobuf field with the content c.out[start:] by writing its length in
// front of it. One byte is reserved for the length; if it needs more, endLengthPrefixed moves the
// content.
func (c *converter) endLengthPrefixed(start int) {
	contentLen := len(c.out) - start
	reserved := start - 1
	if contentLen <= maxOneByteVarint {
		c.out[reserved] = byte(contentLen)
		return
	}
	var buf [binary.MaxVarintLen64]byte
	encodedLen := protowire.AppendVarint(buf[:0], uint64(contentLen))
	c.out[reserved] = encodedLen[0]
	c.out = slices.Insert(c.out, start, encodedLen[1:]...)
}

// encoding is the type of a field in JSON and in protobuf.
type encoding uint8

const (
	asString encoding = iota
	asHex             // ID: hexadecimal string in JSON, bytes in protobuf
	asBase64          // other bytes
	asMessage
	asBool
	asVarint64 // 64-bit integer
	asVarint32 // enum or count
	asFixed64  // 64-bit integer
	asFixed32  // 32-bit integer
	asDouble
)

// isBytes reports whether a field contains bytes, which are a string in JSON.
func (e encoding) isBytes() bool { return e == asHex || e == asBase64 }

// isNumber reports whether a field is a number, which can be a string in JSON.
func (e encoding) isNumber() bool { return e >= asVarint64 }

// wireTypes are the wire types of the encodings in protobuf.
var wireTypes = [...]protowire.Type{
	asString: protowire.BytesType, asHex: protowire.BytesType, asBase64: protowire.BytesType,
	asMessage: protowire.BytesType,
	asBool:    protowire.VarintType, asVarint64: protowire.VarintType, asVarint32: protowire.VarintType,
	asFixed64: protowire.Fixed64Type, asDouble: protowire.Fixed64Type, asFixed32: protowire.Fixed32Type,
}

// field is a field of a message. Its JSON value shows whether it is repeated.
type field struct {
	name     string
	number   protowire.Number
	encoding encoding
	fields   *messageFields // fields of the submessage; nil for other encodings
}

// messageFields are the fields of a message.
type messageFields []field

// find returns the index of the field with the given name, or -1 if the message has no such field.
func (fields messageFields) find(name []byte) (index int) {
	for i := range fields {
		if string(name) == fields[i].name {
			return i
		}
	}
	return -1
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
		{"status", 15, asMessage, &statusFields},
		{"links", 13, asMessage, &linkFields},
		{"droppedLinksCount", 14, asVarint32, nil},
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
