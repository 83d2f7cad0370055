package wire

import (
	"encoding/binary"
	"math"
)

// The appenders below write the shortest form that msgpack has for the value,
// so that equal meanings are equal bytes: the daemon finds a key by its bytes.

func appendUint(dst []byte, v uint64) []byte {
	switch {
	case v < fixMap:
		return append(dst, byte(v))
	case v <= math.MaxUint8:
		return append(dst, uint8v, byte(v))
	case v <= math.MaxUint16:
		return append(dst, uint16v, byte(v>>8), byte(v))
	case v <= math.MaxUint32:
		return append(dst, uint32v, byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
	}
	return binary.BigEndian.AppendUint64(append(dst, uint64v), v)
}

// putUint is appendUint where there is room for any integer. It returns how many
// bytes that took.
func putUint(b *[9]byte, v uint64) int {
	switch {
	case v < fixMap:
		b[0] = byte(v)
		return 1
	case v <= math.MaxUint8:
		b[0], b[1] = uint8v, byte(v)
		return 2
	case v <= math.MaxUint16:
		b[0] = uint16v
		binary.BigEndian.PutUint16(b[1:], uint16(v))
		return 3
	case v <= math.MaxUint32:
		b[0] = uint32v
		binary.BigEndian.PutUint32(b[1:], uint32(v))
		return 5
	}
	b[0] = uint64v
	binary.BigEndian.PutUint64(b[1:], v)
	return 9
}

func appendInt(dst []byte, v int64) []byte {
	switch {
	case v >= 0:
		return appendUint(dst, uint64(v))
	case v >= -32:
		return append(dst, byte(v))
	case v >= math.MinInt8:
		return append(dst, int8v, byte(v))
	case v >= math.MinInt16:
		return append(dst, int16v, byte(v>>8), byte(v))
	case v >= math.MinInt32:
		return append(dst, int32v, byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
	}
	return binary.BigEndian.AppendUint64(append(dst, int64v), uint64(v))
}

// appendNumber writes a whole number as an integer and any other as a float64.
func appendNumber(dst []byte, v float64) []byte {
	if v >= 0 && v <= math.MaxUint32 && v == math.Trunc(v) {
		return appendUint(dst, uint64(v))
	}
	return binary.BigEndian.AppendUint64(append(dst, float64v), math.Float64bits(v))
}

// appendArray writes the header of an array of at most 65535 elements. Nothing
// here is longer but a batch and a define, whose headers have a fixed width.
func appendArray(dst []byte, count int) []byte {
	if count < 16 {
		return append(dst, fixArray|byte(count))
	}
	return append(dst, array16, byte(count>>8), byte(count))
}

func appendStr(dst []byte, s string) []byte {
	if len(s) < 32 {
		dst = append(dst, fixStr|byte(len(s)))
	} else {
		dst = appendSize(dst, str8, len(s))
	}
	return append(dst, s...)
}

func appendBin(dst, s []byte) []byte {
	return append(appendSize(dst, bin8, len(s)), s...)
}

// appendSize writes a length of 1, 2 or 4 bytes after its lead byte, which is
// base or one of the two after it.
func appendSize(dst []byte, base byte, size int) []byte {
	switch {
	case size <= math.MaxUint8:
		return append(dst, base, byte(size))
	case size <= math.MaxUint16:
		return append(dst, base+1, byte(size>>8), byte(size))
	}
	return binary.BigEndian.AppendUint32(append(dst, base+2), uint32(size))
}
