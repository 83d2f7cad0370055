package otlpanswer

import (
	"iter"

	"google.golang.org/protobuf/encoding/protowire"
)

// Field is one field of a protobuf message: its bytes, or its number where it is one.
type Field struct {
	Number protowire.Number
	Bytes  []byte
	Value  uint64
}

// Fields goes through a message, and ends where it is none.
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

func appendText(to []byte, number protowire.Number, text string) []byte {
	return protowire.AppendString(protowire.AppendTag(to, number, protowire.BytesType), text)
}

// appendNumber appends a number, which is left out where it is 0.
func appendNumber(to []byte, number protowire.Number, value uint64) []byte {
	if value == 0 {
		return to
	}
	return protowire.AppendVarint(protowire.AppendTag(to, number, protowire.VarintType), value)
}
