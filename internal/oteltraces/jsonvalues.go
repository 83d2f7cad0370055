package oteltraces

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"math"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// appendJSON writes a value that is no message as a field.
func appendJSON(dst []byte, f jsonField, value json.Token) ([]byte, error) {
	switch f.kind {
	case jsonBool:
		is, ok := value.(bool)
		if !ok {
			return dst, errJSONShape
		}
		return protowire.AppendVarint(protowire.AppendTag(dst, f.number, protowire.VarintType), protowire.EncodeBool(is)), nil
	case jsonVarint, jsonFixed64, jsonFixed32:
		n, ok := jsonInteger(value)
		if !ok {
			return dst, errJSONShape
		}
		return appendJSONInteger(dst, f, n), nil
	case jsonDouble:
		n, ok := jsonFloat(value)
		if !ok {
			return dst, errJSONShape
		}
		return protowire.AppendFixed64(protowire.AppendTag(dst, f.number, protowire.Fixed64Type), math.Float64bits(n)), nil
	}
	text, ok := value.(string)
	if !ok {
		return dst, errJSONShape
	}
	written := []byte(text)
	var err error
	switch f.kind {
	case jsonHex:
		written, err = hex.DecodeString(text)
	case jsonBase64:
		written, err = base64.StdEncoding.DecodeString(text)
	}
	if err != nil {
		return dst, err
	}
	return protowire.AppendBytes(protowire.AppendTag(dst, f.number, protowire.BytesType), written), nil
}

func appendJSONInteger(dst []byte, f jsonField, n uint64) []byte {
	switch f.kind {
	case jsonFixed64:
		return protowire.AppendFixed64(protowire.AppendTag(dst, f.number, protowire.Fixed64Type), n)
	case jsonFixed32:
		return protowire.AppendFixed32(protowire.AppendTag(dst, f.number, protowire.Fixed32Type), uint32(n))
	}
	return protowire.AppendVarint(protowire.AppendTag(dst, f.number, protowire.VarintType), n)
}

// jsonNumber is the text of a number, which may stand as text.
func jsonNumber(value json.Token) string {
	switch v := value.(type) {
	case json.Number:
		return string(v)
	case string:
		return v
	}
	return ""
}

// jsonInteger reads an integer of 64 bits, as its two's complement where it is negative. One
// may be written with an exponent, or as 1.0.
func jsonInteger(value json.Token) (uint64, bool) {
	text := jsonNumber(value)
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

// jsonFloat reads a number, which may be infinite or none.
func jsonFloat(value json.Token) (float64, bool) {
	n, err := strconv.ParseFloat(jsonNumber(value), 64)
	return n, err == nil
}
