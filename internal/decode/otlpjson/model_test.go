package otlpjson

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// modelFromJSON implements FromJSON with the tokens of encoding/json. It is slow but simple.
func modelFromJSON(dst, body []byte) ([]byte, error) {
	r := tokenReader{Decoder: json.NewDecoder(bytes.NewReader(body))}
	r.UseNumber()
	return r.request(dst)
}

// tokenReader reads a request token by token.
type tokenReader struct{ *json.Decoder }

func (r *tokenReader) request(dst []byte) ([]byte, error) {
	t, err := r.Token()
	if err != nil {
		return dst, err
	}
	if t != json.Delim('{') {
		return dst, errType
	}
	if dst, err = r.message(dst, requestFields, 0); err != nil {
		return dst, err
	}
	if _, err = r.Token(); !errors.Is(err, io.EOF) {
		return dst, errors.New("something follows the request")
	}
	return dst, nil
}

// message converts the members of an object, whose opening bracket has been read.
func (r *tokenReader) message(dst []byte, fields messageFields, depth int) ([]byte, error) {
	for {
		name, err := r.Token()
		if err != nil {
			return dst, err
		}
		text, isName := name.(string)
		if !isName {
			return dst, nil // closing bracket
		}
		value, err := r.Token()
		if err != nil {
			return dst, err
		}
		if i := fields.find([]byte(text)); i >= 0 {
			dst, err = r.field(dst, fields[i], value, depth)
		} else {
			err = r.skip(value)
		}
		if err != nil {
			return dst, err
		}
	}
}

// field converts the value of a field, which begins with a token that has been read: a single
// value, a list, or null.
func (r *tokenReader) field(dst []byte, f field, value json.Token, depth int) ([]byte, error) {
	if value == nil {
		return dst, nil
	}
	if value != json.Delim('[') {
		return r.value(dst, f, value, depth)
	}
	if f.encoding != asMessage && f.encoding != asString {
		return dst, errType // not a repeated field
	}
	for {
		element, err := r.Token()
		if err != nil || element == json.Delim(']') {
			return dst, err
		}
		if dst, err = r.value(dst, f, element, depth); err != nil {
			return dst, err
		}
	}
}

// value writes the tag of a field and one value.
func (r *tokenReader) value(dst []byte, f field, value json.Token, depth int) ([]byte, error) {
	if f.encoding != asMessage {
		return appendModel(dst, f, value)
	}
	if value != json.Delim('{') {
		return dst, errType
	}
	dst = protowire.AppendTag(dst, f.number, protowire.BytesType)
	if depth == MaxDepth {
		return append(dst, 0), r.skip(value)
	}
	begin := len(dst)
	dst, err := r.message(dst, *f.fields, depth+1)
	if err != nil {
		return dst, err
	}
	var length [10]byte
	return slices.Insert(dst, begin, protowire.AppendVarint(length[:0], uint64(len(dst)-begin))...), nil
}

// skip skips a value whose first token has been read.
func (r *tokenReader) skip(value json.Token) error {
	for open := 0; ; {
		switch value {
		case json.Delim('{'), json.Delim('['):
			open++
		case json.Delim('}'), json.Delim(']'):
			open--
		}
		if open == 0 {
			return nil
		}
		var err error
		if value, err = r.Token(); err != nil {
			return err
		}
	}
}

// appendModel appends a field that is not a message.
func appendModel(dst []byte, f field, value json.Token) ([]byte, error) {
	switch f.encoding {
	case asBool:
		is, ok := value.(bool)
		if !ok {
			return dst, errType
		}
		return protowire.AppendVarint(protowire.AppendTag(dst, f.number, protowire.VarintType),
			protowire.EncodeBool(is)), nil
	case asVarint64, asVarint32, asFixed64, asFixed32:
		n, ok := modelInteger(value)
		if !ok {
			return dst, errType
		}
		return appendModelInteger(dst, f, n), nil
	case asDouble:
		n, ok := modelFloat(value)
		if !ok {
			return dst, errType
		}
		return protowire.AppendFixed64(protowire.AppendTag(dst, f.number, protowire.Fixed64Type),
			math.Float64bits(n)), nil
	}
	text, ok := value.(string)
	if !ok {
		return dst, errType
	}
	written := []byte(text)
	var err error
	switch f.encoding {
	case asHex:
		written, err = hex.DecodeString(text)
	case asBase64:
		written, err = base64.StdEncoding.DecodeString(text)
	}
	if err != nil {
		return dst, err
	}
	return protowire.AppendBytes(protowire.AppendTag(dst, f.number, protowire.BytesType), written), nil
}

func appendModelInteger(dst []byte, f field, n uint64) []byte {
	switch f.encoding {
	case asVarint32:
		n = uint64(uint32(n))
	case asFixed64:
		return protowire.AppendFixed64(protowire.AppendTag(dst, f.number, protowire.Fixed64Type), n)
	case asFixed32:
		return protowire.AppendFixed32(protowire.AppendTag(dst, f.number, protowire.Fixed32Type), uint32(n))
	}
	return protowire.AppendVarint(protowire.AppendTag(dst, f.number, protowire.VarintType), n)
}

// modelNumber returns the text of a number, which may be a string.
func modelNumber(value json.Token) string {
	switch v := value.(type) {
	case json.Number:
		return string(v)
	case string:
		return v
	}
	return ""
}

// modelInteger parses a 64-bit integer, in two's complement if negative. It accepts fractions and
// exponents if the value is an integer.
func modelInteger(value json.Token) (uint64, bool) {
	text := modelNumber(value)
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		return n, true
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return uint64(n), true
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) >= 1<<63 {
		return 0, false
	}
	return uint64(int64(f)), true
}

// modelFloat parses a number, NaN or an infinity.
func modelFloat(value json.Token) (float64, bool) {
	n, err := strconv.ParseFloat(modelNumber(value), 64)
	return n, err == nil
}
