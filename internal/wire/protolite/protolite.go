// Package protolite reads and writes protobuf messages field by field, without generated types.
//
// Generated types need several allocations per attribute of each data point or span. Code that uses only a
// few fields can append them, or iterate over them in place, instead.
//
// Iteration stops at the first malformed field. The fields are parts of the message, and valid as long as
// it does not change.
//
// Concurrency: all functions are safe for concurrent use.
//
// Limits: none. Iteration visits each byte of a message once.
package protolite

import (
	"iter"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// Number is the number of a field.
type Number = protowire.Number

// Field is a field of a message. Bytes is set for strings, bytes and messages, and Value for numbers.
type Field struct {
	Number Number
	Bytes  []byte
	Value  uint64
}

// Fields iterates over the fields of an encoded message. It stops at the first malformed field.
func Fields(message []byte) iter.Seq[Field] {
	return func(yield func(Field) bool) {
		for len(message) > 0 {
			number, kind, tagLen := protowire.ConsumeTag(message)
			if tagLen < 0 { // malformed
				return
			}
			message = message[tagLen:]
			field := Field{Number: number}
			valueLen := 0
			switch kind {
			case protowire.VarintType:
				field.Value, valueLen = protowire.ConsumeVarint(message)
			case protowire.Fixed64Type:
				field.Value, valueLen = protowire.ConsumeFixed64(message)
			case protowire.BytesType:
				field.Bytes, valueLen = protowire.ConsumeBytes(message)
			default:
				valueLen = protowire.ConsumeFieldValue(number, kind, message)
			}
			isMalformed := valueLen < 0
			if isMalformed || !yield(field) {
				return
			}
			message = message[valueLen:]
		}
	}
}

// Messages iterates over the nested messages that a path of field numbers leads to.
func Messages(message []byte, path ...Number) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		visit(message, path, yield)
	}
}

// visit calls yield with each message at path inside message. path consists of field numbers, the outermost first.
// If yield returns false, visit stops and returns false.
func visit(message []byte, path []Number, yield func([]byte) bool) bool {
	if len(path) == 0 {
		return yield(message)
	}
	for f := range Fields(message) {
		isMessageOnPath := f.Number == path[0] && f.Bytes != nil
		if !isMessageOnPath {
			continue
		}
		if !visit(f.Bytes, path[1:], yield) {
			return false
		}
	}
	return true
}

// AppendBytes appends a field with a string, bytes or an encoded message.
func AppendBytes[T string | []byte](b []byte, field Number, value T) []byte {
	return append(AppendHead(b, field, len(value)), value...)
}

// AppendHead appends the tag and the length of a field, whose content of size bytes the caller appends
// next.
func AppendHead(b []byte, field Number, size int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.BytesType), uint64(size))
}

// AppendVarint appends a field with an integer or a boolean.
func AppendVarint(b []byte, field Number, n uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), n)
}

// AppendFixed64 appends a field with an integer of eight bytes.
func AppendFixed64(b []byte, field Number, n uint64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), n)
}

// AppendDouble appends a field with a float64.
func AppendDouble(b []byte, field Number, f float64) []byte {
	return AppendFixed64(b, field, math.Float64bits(f))
}

// FieldSize returns the length of an encoded field, including its tag and the length of its content. contentSize is the
// number of bytes of the content. The field number must be at most 15, so that the tag takes one byte.
func FieldSize(contentSize int) int { return 1 + protowire.SizeBytes(contentSize) }
