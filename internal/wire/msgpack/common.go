package msgpack

import (
	"encoding/binary"
	"math"
)

// The functions in this file read a value at b[pos] if it has one of its most common encodings, for loops that keep
// the position in a register instead of in a Reader. They return the position of the next value. For all other
// encodings, for malformed values, and near the end of b, they return 0, and the caller must use a Reader.
//
// They check the length once, with Lookahead, so that the compiler omits further bounds checks, and shift instead of
// branching on the width of an integer, because widths are unpredictable. Decoding traces spends most of its time here.

// Lookahead is the number of bytes that b must have from pos on for a function of this file to read a value. It is the
// length of the longest integer or float: a lead byte and 64 bits.
const Lookahead = 1 + 8

// CommonStr reads a string of less than 256 bytes at b[pos]. next is the position after the string. next is 0 if
// b[pos] does not begin such a string, if the string is cut off, or if fewer than Lookahead bytes are left.
func CommonStr(b []byte, pos int) (t Text, next int) {
	if pos < 0 || pos > len(b)-Lookahead { // fewer than Lookahead bytes are left
		return t, 0
	}
	lead := b[pos]
	start := pos + 1
	length := int(lead & 0x1f) // if lead is a FixStr, whose low five bits are the length
	if lead&0xe0 != FixStr {
		if lead != Str8 { // the only other type for less than 256 bytes
			return t, 0
		}
		length = int(b[start]) // within b, because at least Lookahead bytes are left
		start++
	}
	next = start + length
	if next > len(b) {
		return t, 0
	}
	return Text{uint32(start), uint32(length)}, next
}

// CommonUint reads a MessagePack integer of one of the unsigned types at b[pos]. next is the position after the integer.
// next is 0 if b[pos] does not begin such an integer, or if fewer than Lookahead bytes are left.
func CommonUint(b []byte, pos int) (v uint64, next int) {
	if pos < 0 || pos > len(b)-Lookahead { // fewer than Lookahead bytes are left
		return 0, 0
	}
	lead := b[pos]
	if lead < FixMap { // 0 to 127: the lead byte is the integer
		return uint64(lead), pos + 1
	}
	if lead < Uint8 || lead > Uint64 {
		return 0, 0
	}
	width := 1 << (lead - Uint8)                                    // 1, 2, 4 or 8 bytes for Uint8, Uint16, Uint32 and Uint64
	eightBytes := binary.BigEndian.Uint64(b[pos+1 : pos+Lookahead]) // the integer and the bytes after it
	return eightBytes >> (64 - 8*width), pos + 1 + width            // the shift removes the bytes after the integer
}

// CommonInt reads a MessagePack integer of 0 or more, of a signed or unsigned type, at b[pos]. next is the position after
// the integer. next is 0 if b[pos] does not begin such an integer, or if fewer than Lookahead bytes are left.
func CommonInt(b []byte, pos int) (v uint64, next int) {
	if pos < 0 || pos > len(b)-Lookahead { // fewer than Lookahead bytes are left
		return 0, 0
	}
	lead := b[pos]
	if lead < FixMap { // 0 to 127: the lead byte is the integer
		return uint64(lead), pos + 1
	}
	if lead < Uint8 || lead > Int64 {
		return 0, 0
	}
	eightBytes := binary.BigEndian.Uint64(b[pos+1 : pos+Lookahead]) // the integer and the bytes after it
	isSigned := lead >= Int8                                        // the lead bytes of signed integers follow those of unsigned ones
	signBit := eightBytes >> 63                                     // the first bit of an integer of any width
	if isSigned && signBit == 1 {
		return 0, 0
	}
	width := integerWidth(lead)
	bitsAfter := 64 - 8*width // bits of eightBytes that are not part of the integer
	return eightBytes >> bitsAfter, pos + 1 + width
}

// integerWidth returns the number of bytes that follow the lead byte of an integer: 1, 2, 4 or 8. The lead byte must be
// in the range from Uint8 to Int64. In this range, the lowest two bits are 0 for 1 byte, 1 for 2 bytes, 2 for 4 bytes
// and 3 for 8 bytes.
func integerWidth(lead byte) int { return 1 << (lead & 3) }

// CommonNumber reads a float64, or an integer from 0 to 127, at b[pos]. bits is math.Float64bits of the number, and
// next is the position after it. next is 0 for any other value, or if fewer than Lookahead bytes are left.
func CommonNumber(b []byte, pos int) (bits uint64, next int) {
	if pos < 0 || pos > len(b)-Lookahead { // fewer than Lookahead bytes are left
		return 0, 0
	}
	if b[pos] == Float64 {
		end := pos + float64Len
		return binary.BigEndian.Uint64(b[pos+1 : end]), end
	}
	if b[pos] < FixMap { // 0 to 127: the lead byte is the integer
		return math.Float64bits(float64(b[pos])), pos + 1
	}
	return 0, 0
}
