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

// modelFromJSON is FromJSON as the tokens of encoding/json have it: slow, and simple to believe.
func modelFromJSON(dst, body []byte) ([]byte, error) {
	r := tokenReader{Decoder: json.NewDecoder(bytes.NewReader(body))}
	r.UseNumber()
	return r.request(dst)
}

// tokenReader reads a request, token by token.
type tokenReader struct{ *json.Decoder }

func (r *tokenReader) request(dst []byte) ([]byte, error) {
	t, err := r.Token()
	if err != nil {
		return dst, err
	}
	if t != json.Delim('{') {
		return dst, errShape
	}
	if dst, err = r.message(dst, requestFields, 0); err != nil {
		return dst, err
	}
	if _, err = r.Token(); !errors.Is(err, io.EOF) {
		return dst, errors.New("something follows the request")
	}
	return dst, nil
}

// message writes the fields of a message behind its opening brace.
func (r *tokenReader) message(dst []byte, fields fields, depth int) ([]byte, error) {
	for {
		name, err := r.Token()
		if err != nil {
			return dst, err
		}
		text, isName := name.(string)
		if !isName {
			return dst, nil // the closing brace
		}
		value, err := r.Token()
		if err != nil {
			return dst, err
		}
		if f := fields.named([]byte(text)); f != nil {
			dst, err = r.field(dst, *f, value, depth)
		} else {
			err = r.skip(value)
		}
		if err != nil {
			return dst, err
		}
	}
}

// field writes a field that begins with a token: a value, a list of them, or null.
func (r *tokenReader) field(dst []byte, f field, value json.Token, depth int) ([]byte, error) {
	if value == nil {
		return dst, nil
	}
	if value != json.Delim('[') {
		return r.value(dst, f, value, depth)
	}
	if f.form != asMessage && f.form != asText {
		return dst, errShape // no other field is a list
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

// value writes one value, and before it the field's tag.
func (r *tokenReader) value(dst []byte, f field, value json.Token, depth int) ([]byte, error) {
	if f.form != asMessage {
		return appendModel(dst, f, value)
	}
	if value != json.Delim('{') {
		return dst, errShape
	}
	dst = protowire.AppendTag(dst, f.number, protowire.BytesType)
	if depth == MaxDepth {
		return append(dst, 0), r.skip(value)
	}
	begin := len(dst)
	dst, err := r.message(dst, *f.of, depth+1)
	if err != nil {
		return dst, err
	}
	var length [10]byte
	return slices.Insert(dst, begin, protowire.AppendVarint(length[:0], uint64(len(dst)-begin))...), nil
}

// skip steps over a value that begins with a token.
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

// appendModel writes a value that is no message as a field.
func appendModel(dst []byte, f field, value json.Token) ([]byte, error) {
	switch f.form {
	case asBool:
		is, ok := value.(bool)
		if !ok {
			return dst, errShape
		}
		return protowire.AppendVarint(protowire.AppendTag(dst, f.number, protowire.VarintType),
			protowire.EncodeBool(is)), nil
	case asVarint64, asVarint32, asFixed64, asFixed32:
		n, ok := modelInteger(value)
		if !ok {
			return dst, errShape
		}
		return appendModelInteger(dst, f, n), nil
	case asDouble:
		n, ok := modelFloat(value)
		if !ok {
			return dst, errShape
		}
		return protowire.AppendFixed64(protowire.AppendTag(dst, f.number, protowire.Fixed64Type),
			math.Float64bits(n)), nil
	}
	text, ok := value.(string)
	if !ok {
		return dst, errShape
	}
	written := []byte(text)
	var err error
	switch f.form {
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
	switch f.form {
	case asVarint32:
		n = uint64(uint32(n))
	case asFixed64:
		return protowire.AppendFixed64(protowire.AppendTag(dst, f.number, protowire.Fixed64Type), n)
	case asFixed32:
		return protowire.AppendFixed32(protowire.AppendTag(dst, f.number, protowire.Fixed32Type), uint32(n))
	}
	return protowire.AppendVarint(protowire.AppendTag(dst, f.number, protowire.VarintType), n)
}

// modelNumber is the text of a number, which may stand as text.
func modelNumber(value json.Token) string {
	switch v := value.(type) {
	case json.Number:
		return string(v)
	case string:
		return v
	}
	return ""
}

// modelInteger reads an integer of 64 bits, as its two's complement where it is negative. One
// may be written with an exponent, or as 1.0.
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

// modelFloat reads a number, which may be infinite or none.
func modelFloat(value json.Token) (float64, bool) {
	n, err := strconv.ParseFloat(modelNumber(value), 64)
	return n, err == nil
}
