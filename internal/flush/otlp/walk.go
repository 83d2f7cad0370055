package otlp

import (
	"iter"

	"google.golang.org/protobuf/encoding/protowire"
)

// field is one field of a message: its bytes, or its number where it is one.
type field struct {
	number protowire.Number
	bytes  []byte
	value  uint64
}

// fields goes through a message, and ends where it is none.
func fields(message []byte) iter.Seq[field] {
	return func(yield func(field) bool) {
		for len(message) > 0 {
			number, kind, tag := protowire.ConsumeTag(message)
			if tag < 0 {
				return
			}
			f, size := field{number: number}, 0
			switch rest := message[tag:]; kind {
			case protowire.VarintType:
				f.value, size = protowire.ConsumeVarint(rest)
			case protowire.Fixed64Type:
				f.value, size = protowire.ConsumeFixed64(rest)
			case protowire.BytesType:
				f.bytes, size = protowire.ConsumeBytes(rest)
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

// messages goes through what stands in a message below a path of fields.
func messages(message []byte, path ...protowire.Number) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for f := range fields(message) {
			if f.number != path[0] || f.bytes == nil {
				continue
			}
			if len(path) == 1 {
				if !yield(f.bytes) {
					return
				}
				continue
			}
			for below := range messages(f.bytes, path[1:]...) {
				if !yield(below) {
					return
				}
			}
		}
	}
}
