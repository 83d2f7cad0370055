package oteltraces

import (
	"encoding/binary"
	"math"

	"github.com/spanstatsd/spanstatsd/internal/msgpack"
)

// What the payloads of traces are written with: each value in the form that its reader takes
// first.

func appendText(dst []byte, text string) []byte {
	switch n := len(text); {
	case n < 32:
		dst = append(dst, msgpack.FixStr|byte(n))
	case n <= math.MaxUint8:
		dst = append(dst, msgpack.Str8, byte(n))
	default:
		dst = binary.BigEndian.AppendUint32(append(dst, msgpack.Str32), uint32(n))
	}
	return append(dst, text...)
}

func appendUnsigned(dst []byte, n uint64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, msgpack.Uint64), n)
}

func appendInteger(dst []byte, n int64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, msgpack.Int64), uint64(n))
}

func appendFloat(dst []byte, n float64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, msgpack.Float64), math.Float64bits(n))
}

func appendArrayHeader(dst []byte, n int) []byte {
	return binary.BigEndian.AppendUint32(append(dst, msgpack.Array32), uint32(n))
}

func appendMapHeader(dst []byte, n int) []byte {
	return append(dst, msgpack.Map16, byte(n>>8), byte(n))
}
