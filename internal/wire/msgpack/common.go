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

// Lookahead is the number of bytes that must follow pos for a function of this file to read a value: the
// longest integer or float with its lead byte.
const Lookahead = 9

// CommonStr reads a string of less than 256 bytes at b[pos]. next is the position after the string. next is 0 if
// b[pos] does not begin such a string, if the string is cut off, or if fewer than Lookahead bytes are left.
func CommonStr(b []byte, pos int) (t Text, next int) {
	if pos < 0 || pos > len(b)-Lookahead { // fewer than Lookahead bytes are left
		return t, 0
	}
	lead := b[pos]
	length := int(lead - FixStr) // wraps around to more than maxFixStr if lead is smaller than FixStr
	start := pos + 1
	if length > maxFixStr {
		if lead != Str8 {
			return t, 0
		}
		length = int(b[start])
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
	width := 1 << (lead - Uint8) // 1, 2, 4 or 8 bytes for Uint8, Uint16, Uint32 and Uint64
	eightBytes := binary.BigEndian.Uint64(b[pos+1 : pos+Lookahead])
	return eightBytes >> (64 - 8*width), pos + 1 + width
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
	eightBytes := binary.BigEndian.Uint64(b[pos+1 : pos+Lookahead])
	isInteger := lead >= Uint8 && lead <= Int64
	isNegative := lead >= Int8 && int64(eightBytes) < 0
	if !isInteger || isNegative {
		return 0, 0
	}
	width := 1 << (lead & 3) // 1, 2, 4 or 8 bytes: Uint8 and Int8 are multiples of 4
	unusedBits := 64 - 8*width
	return eightBytes >> unusedBits, pos + 1 + width
}

// CommonNumber reads a float64, or an integer from 0 to 127, at b[pos]. bits is math.Float64bits of the number, and
// next is the position after it. next is 0 for any other value, or if fewer than Lookahead bytes are left.
func CommonNumber(b []byte, pos int) (bits uint64, next int) {
	if pos < 0 || pos > len(b)-Lookahead { // fewer than Lookahead bytes are left
		return 0, 0
	}
	if b[pos] == Float64 {
		return binary.BigEndian.Uint64(b[pos+1 : pos+Lookahead]), pos + Lookahead
	}
	if b[pos] < FixMap { // 0 to 127: the lead byte is the integer
		return math.Float64bits(float64(b[pos])), pos + 1
	}
	return 0, 0
}
