package wire

import (
	"encoding/binary"
	"math"

	"github.com/spanstatsd/spanstatsd/internal/wire/msgpack"
)

// The functions in this file append the shortest msgpack encoding of a value. So equal keys have equal bytes, and the
// daemon can look up keys by their bytes.

// maxUintLen is the maximum length of an encoded integer.
const maxUintLen = 1 + 8

func appendUint(dst []byte, v uint64) []byte {
	var b [maxUintLen]byte
	return append(dst, b[:putUint(&b, v)]...)
}

// putUint writes the shortest encoding of v to the start of b, and returns the length of the encoding.
func putUint(b *[maxUintLen]byte, v uint64) int {
	switch {
	case v < msgpack.FixMap:
		b[0] = byte(v)
		return 1
	case v <= math.MaxUint8:
		b[0], b[1] = msgpack.Uint8, byte(v)
		return 2
	case v <= math.MaxUint16:
		b[0] = msgpack.Uint16
		binary.BigEndian.PutUint16(b[1:], uint16(v))
		return 3
	case v <= math.MaxUint32:
		b[0] = msgpack.Uint32
		binary.BigEndian.PutUint32(b[1:], uint32(v))
		return 5
	}
	b[0] = msgpack.Uint64
	binary.BigEndian.PutUint64(b[1:], v)
	return maxUintLen
}

func appendInt(dst []byte, v int64) []byte {
	switch {
	case v >= 0:
		return appendUint(dst, uint64(v))
	case v >= -32:
		return append(dst, byte(v))
	case v >= math.MinInt8:
		return append(dst, msgpack.Int8, byte(v))
	case v >= math.MinInt16:
		return append(dst, msgpack.Int16, byte(v>>8), byte(v))
	case v >= math.MinInt32:
		return append(dst, msgpack.Int32, byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
	}
	return binary.BigEndian.AppendUint64(append(dst, msgpack.Int64), uint64(v))
}

// appendNumber appends a number as an integer if it is one, and otherwise as a float64.
func appendNumber(dst []byte, v float64) []byte {
	if v >= 0 && v <= math.MaxUint32 && v == math.Trunc(v) {
		return appendUint(dst, uint64(v))
	}
	return binary.BigEndian.AppendUint64(append(dst, msgpack.Float64), math.Float64bits(v))
}

// appendArray appends the header of an array of at most 65,535 elements. Batches and define messages can be
// longer and use beginList instead.
func appendArray(dst []byte, count int) []byte {
	if count < 16 {
		return append(dst, msgpack.FixArray|byte(count))
	}
	return append(dst, msgpack.Array16, byte(count>>8), byte(count))
}

func appendStr(dst []byte, s string) []byte {
	if len(s) < 32 {
		dst = append(dst, msgpack.FixStr|byte(len(s)))
	} else {
		dst = appendLength(dst, msgpack.Str8, len(s))
	}
	return append(dst, s...)
}

func appendBin(dst, s []byte) []byte {
	return append(appendLength(dst, msgpack.Bin8, len(s)), s...)
}

// appendLength appends a lead byte and the length of a string or byte string. The lead byte is lead8 if the length
// fits in one byte, lead8+1 if it fits in two bytes, and lead8+2 otherwise.
func appendLength(dst []byte, lead8 byte, length int) []byte {
	switch {
	case length <= math.MaxUint8:
		return append(dst, lead8, byte(length))
	case length <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(dst, lead8+1), uint16(length))
	}
	return binary.BigEndian.AppendUint32(append(dst, lead8+2), uint32(length))
}
