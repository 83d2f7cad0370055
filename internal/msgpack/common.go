package msgpack

import (
	"encoding/binary"
	"math"
)

// The functions below read values of their most common forms at a place of a body, for
// loops that keep the place in a register instead of in a Reader. They return where the
// next value begins, or 0 for any other form, well formed or not: that is a Reader's to
// read. Near the end of a body they read nothing.

// Ahead is how many bytes have to lie ahead of a place.
const Ahead = 9

// CommonStr reads a string of less than 256 bytes.
func CommonStr(b []byte, at int) (t Text, next int) {
	if len(b)-at < Ahead {
		return t, 0
	}
	n := int(b[at]) - FixStr
	if b[at] == Str8 {
		at++
		n = int(b[at])
	} else if uint(n) >= 32 {
		return t, 0
	}
	if next = at + 1 + n; next > len(b) {
		return t, 0
	}
	return Text{uint32(at + 1), uint32(n)}, next
}

// CommonUint reads an integer that is not negative and has an unsigned form.
func CommonUint(b []byte, at int) (v uint64, next int) {
	if len(b)-at < Ahead {
		return 0, 0
	}
	head := (*[Ahead]byte)(b[at:])
	if head[0] < FixMap {
		return uint64(head[0]), at + 1
	}
	power := head[0] - Uint8
	if power > 3 {
		return 0, 0
	}
	width := 8 << power
	return binary.BigEndian.Uint64(head[1:]) >> (64 - width), at + 1 + width>>3
}

// CommonNumber reads a float64, or an integer of one byte that is not negative, as the
// bits of a float64.
func CommonNumber(b []byte, at int) (bits uint64, next int) {
	if len(b)-at < Ahead {
		return 0, 0
	}
	head := (*[Ahead]byte)(b[at:])
	if head[0] == Float64 {
		return binary.BigEndian.Uint64(head[1:]), at + Ahead
	}
	if head[0] < FixMap {
		return math.Float64bits(float64(head[0])), at + 1
	}
	return 0, 0
}
