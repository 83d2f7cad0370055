package wire

import (
	"encoding/binary"
	"math"
)

// The readers below look at the value at the start of b and return the number
// of bytes that they took. They take none when it is another kind of value or
// is cut short: the caller knows better which of the two to say, and a reader
// that builds no error is small and allocates nothing.

// readInteger reads an integer of any width. A negative one comes as its two's
// complement, marked.
func readInteger(b []byte) (v uint64, isNegative bool, n int) {
	if len(b) == 0 {
		return 0, false, 0
	}
	lead := b[0]
	if lead < fixMap {
		return uint64(lead), false, 1
	}
	if lead >= fixNegative {
		return uint64(int64(int8(lead))), true, 1
	}
	if lead < uint8v || lead > int64v {
		return 0, false, 0
	}
	// uint8 to uint64, then int8 to int64: the low two bits are the width's power.
	n = 1 + 1<<(lead&3)
	if len(b) < n {
		return 0, false, 0
	}
	v = readBigEndian(b[1:n])
	if lead >= int8v {
		unread := 64 - 8*uint(n-1)
		signed := int64(v<<unread) >> unread
		return uint64(signed), signed < 0, n
	}
	return v, false, n
}

// readBigEndian reads 1, 2, 4 or 8 bytes.
func readBigEndian(b []byte) uint64 {
	switch len(b) {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.BigEndian.Uint16(b))
	case 4:
		return uint64(binary.BigEndian.Uint32(b))
	default:
		return binary.BigEndian.Uint64(b)
	}
}

// readNumber reads an integer or a float.
func readNumber(b []byte) (v float64, n int) {
	switch {
	case len(b) >= 5 && b[0] == float32v:
		return float64(math.Float32frombits(binary.BigEndian.Uint32(b[1:]))), 5
	case len(b) >= 9 && b[0] == float64v:
		return math.Float64frombits(binary.BigEndian.Uint64(b[1:])), 9
	}
	u, isNegative, n := readInteger(b)
	if isNegative {
		return float64(int64(u)), n
	}
	return float64(u), n
}

// readArray reads the header of an array: how many elements it claims.
func readArray(b []byte) (count uint32, n int) {
	switch {
	case len(b) >= 1 && b[0]&0xf0 == fixArray:
		return uint32(b[0] & 0x0f), 1
	case len(b) >= 3 && b[0] == array16:
		return uint32(binary.BigEndian.Uint16(b[1:])), 3
	case len(b) >= 5 && b[0] == array32:
		return binary.BigEndian.Uint32(b[1:]), 5
	}
	return 0, 0
}

// readStr reads a string whole. It aliases b.
func readStr(b []byte) (s []byte, n int) {
	if len(b) >= 1 && b[0]&0xe0 == fixStr {
		return readBody(b, 1, uint32(b[0]&0x1f))
	}
	return readSized(b, str8)
}

// readBin reads a byte string whole. It aliases b.
func readBin(b []byte) (s []byte, n int) {
	return readSized(b, bin8)
}

// readSized reads what has a length of 1, 2 or 4 bytes, whose lead bytes are
// base and the two after it.
func readSized(b []byte, base byte) (s []byte, n int) {
	switch {
	case len(b) >= 2 && b[0] == base:
		return readBody(b, 2, uint32(b[1]))
	case len(b) >= 3 && b[0] == base+1:
		return readBody(b, 3, uint32(binary.BigEndian.Uint16(b[1:])))
	case len(b) >= 5 && b[0] == base+2:
		return readBody(b, 5, binary.BigEndian.Uint32(b[1:]))
	}
	return nil, 0
}

func readBody(b []byte, header int, length uint32) (s []byte, n int) {
	if uint64(length) > uint64(len(b)-header) {
		return nil, 0
	}
	n = header + int(length)
	return b[header:n:n], n
}
