package msgpack

import (
	"encoding/binary"
	"math"
)

// The functions below read values of their most common forms at a place of a body, for
// loops that keep the place in a register instead of in a Reader. They return where the
// next value begins, or 0 for any other form, well formed or not: that is a Reader's to
// read. Near the end of a body they read nothing.

// Lookahead is how many bytes have to lie ahead of a place. The functions say so in the one
// way from which the compiler sees that it need not check them again.
const Lookahead = 9

// CommonStr reads a string of less than 256 bytes.
func CommonStr(b []byte, at int) (t Text, next int) {
	if at < 0 || at > len(b)-Lookahead {
		return t, 0
	}
	n := int(b[at] - FixStr)
	if n > 31 {
		if b[at] != Str8 {
			return t, 0
		}
		at++
		n = int(b[at])
	}
	if next = at + 1 + n; next > len(b) {
		return t, 0
	}
	return Text{uint32(at + 1), uint32(n)}, next
}

// CommonUint reads an integer that is not negative and has an unsigned form.
func CommonUint(b []byte, at int) (v uint64, next int) {
	if at < 0 || at > len(b)-Lookahead {
		return 0, 0
	}
	if b[at] < FixMap {
		return uint64(b[at]), at + 1
	}
	power := b[at] - Uint8
	if power > 3 {
		return 0, 0
	}
	width := 8 << power
	return binary.BigEndian.Uint64(b[at+1:at+Lookahead]) >> (64 - width), at + 1 + width>>3
}

// CommonInt reads an integer that is not negative, of any form.
func CommonInt(b []byte, at int) (v uint64, next int) {
	if at < 0 || at > len(b)-Lookahead {
		return 0, 0
	}
	lead := b[at]
	if lead < FixMap {
		return uint64(lead), at + 1
	}
	v = binary.BigEndian.Uint64(b[at+1 : at+Lookahead])
	if lead < Uint8 || lead > Uint64 && v>>63 != 0 || lead > Int64 {
		return 0, 0
	}
	width := 8 << (lead & 3)
	return v >> (64 - width), at + 1 + width>>3
}

// CommonNumber reads a float64, or an integer of one byte that is not negative, as the
// bits of a float64.
func CommonNumber(b []byte, at int) (bits uint64, next int) {
	if at < 0 || at > len(b)-Lookahead {
		return 0, 0
	}
	if b[at] == Float64 {
		return binary.BigEndian.Uint64(b[at+1 : at+Lookahead]), at + Lookahead
	}
	if b[at] < FixMap {
		return math.Float64bits(float64(b[at])), at + 1
	}
	return 0, 0
}
