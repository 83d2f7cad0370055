// Package protolite reads and writes protobuf messages field by field, without generated types.
//
// A generated message needs several allocations per attribute of each point or span. Code that knows which
// few fields it wants appends them, or walks over them in place. A malformed message ends a walk; nothing
// is copied, so what a walk visits is valid as long as the message is.
//
// Concurrency: there are functions only, without state.
//
// Limits: none of its own. A walk is not recursive, and visits each byte of a message once.
package protolite

import (
	"iter"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// Number is the number of a field.
type Number = protowire.Number

// Field is one field of a message: its bytes, or its number if it has a numeric type.
type Field struct {
	Number Number
	Bytes  []byte
	Value  uint64
}

// Fields visits the fields of a message, and stops where the message is malformed.
func Fields(message []byte) iter.Seq[Field] {
	return func(yield func(Field) bool) {
		for len(message) > 0 {
			number, kind, tag := protowire.ConsumeTag(message)
			if tag < 0 {
				return
			}
			f, size := Field{Number: number}, 0
			switch rest := message[tag:]; kind {
			case protowire.VarintType:
				f.Value, size = protowire.ConsumeVarint(rest)
			case protowire.Fixed64Type:
				f.Value, size = protowire.ConsumeFixed64(rest)
			case protowire.BytesType:
				f.Bytes, size = protowire.ConsumeBytes(rest)
			default:
				size = protowire.ConsumeFieldValue(number, kind, rest)
			}
			if size < 0 || !yield(f) {
				return
			}
			message = message[tag+size:]
		}
	}
}

// Messages visits the messages below a path of fields.
func Messages(message []byte, path ...Number) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		visit(message, path, yield)
	}
}

func visit(message []byte, path []Number, yield func([]byte) bool) (goOn bool) {
	if len(path) == 0 {
		return yield(message)
	}
	for f := range Fields(message) {
		if f.Number == path[0] && f.Bytes != nil && !visit(f.Bytes, path[1:], yield) {
			return false
		}
	}
	return true
}

// AppendBytes appends a field that holds a text, bytes or a message.
func AppendBytes[T string | []byte](b []byte, field Number, value T) []byte {
	return append(AppendHead(b, field, len(value)), value...)
}

// AppendHead begins a field that holds so many bytes.
func AppendHead(b []byte, field Number, size int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.BytesType), uint64(size))
}

// AppendVarint appends a field that holds an integer or a boolean.
func AppendVarint(b []byte, field Number, n uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), n)
}

// AppendFixed64 appends a field that holds eight bytes.
func AppendFixed64(b []byte, field Number, n uint64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), n)
}

// AppendDouble appends a field that holds a double.
func AppendDouble(b []byte, field Number, f float64) []byte {
	return AppendFixed64(b, field, math.Float64bits(f))
}

// Size is the length of a field that holds so many bytes, and whose number is at most 15.
func Size(bytes int) int { return 1 + protowire.SizeBytes(bytes) }
