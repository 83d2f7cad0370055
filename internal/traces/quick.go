package traces

import (
	"encoding/binary"
	"math"
	"math/bits"
	"unsafe"
)

// The quick way of reading what is small and of a common form. Where a value lies is
// known only when the one before it was read, so what counts is how long that takes:
// where it is stays in a register, one look at the length of the body is enough for a
// name and the head of its value, and there is no branch on what nobody can foretell.
// Whatever is of another form, or lies near the end of the body, is the reader's.

// ahead is how many bytes have to lie ahead for the functions below: those of a name
// and of the head of a value, eight of them at once.
const ahead = 64

// start is the body as the functions below take it, without its length.
type start *byte

func startOf(b []byte) start { return unsafe.SliceData(b) }

// eight and byteAt look at bytes that the caller knows to be there. The checks of a
// slice would be a fifth of the walk.
func eight(b start, at int) *[8]byte { return (*[8]byte)(unsafe.Add(unsafe.Pointer(b), at)) }
func byteAt(b start, at int) byte    { return *(*byte)(unsafe.Add(unsafe.Pointer(b), at)) }
func word(b start, at int) uint64    { return binary.LittleEndian.Uint64(eight(b, at)[:]) }

// textAt reads a text of less than 32 bytes, or of less than 256. It may end behind the
// body, where the caller must look. next is 0 where the reader is needed.
func textAt(b start, at int) (t text, next int) {
	head := byteAt(b, at)
	long := 0
	if head == 0xd9 {
		long = 1
	}
	n := uint32(head - 0xa0)
	if n&^uint32(-long) >= 32 {
		return text{}, 0
	}
	n ^= (n ^ uint32(byteAt(b, at+1))) & uint32(-long)
	at += 1 + long
	return text{uint32(at), n}, at + int(n)
}

// intAt reads a number that is not negative, of any width.
func intAt(b start, at int) (v uint64, next int) {
	head := byteAt(b, at)
	if head < 0x80 {
		return uint64(head), at + 1
	}
	head -= 0xcc
	v = binary.BigEndian.Uint64(eight(b, at+1)[:])
	if head >= 8 || head >= 4 && int64(v) < 0 {
		return 0, 0
	}
	width := 8 << (head & 3)
	return v >> (64 - width), at + 1 + width>>3
}

// floatAt reads the bits of a float64, or of a whole number of one byte.
func floatAt(b start, at int) (v uint64, next int) {
	head := byteAt(b, at)
	if head == 0xcb {
		return binary.BigEndian.Uint64(eight(b, at+1)[:]), at + 9
	}
	if head < 0x80 {
		return math.Float64bits(float64(head)), at + 1
	}
	return 0, 0
}

// indexAt reads the number of a string, of one byte or of up to two behind a head. In a
// dictionary of some hundred strings nobody can foretell which.
func indexAt(b start, at int) (v uint64, next int) {
	head := byteAt(b, at)
	if head > 0xcd || head-0x80 < 0xcc-0x80 {
		return 0, 0
	}
	long := int(head >> 7)
	n := long + int(head)&long
	v = binary.BigEndian.Uint64(eight(b, at)[:]) << (8 * long & 63) >> (56 - 8*(n-long)&63)
	return v, at + 1 + n
}

// nameMasks and nameBehind say, by the length of a name, which bits of its first and
// last words are its own, and where the last one begins.
var nameMasks, nameBehind = func() (masks [32]uint64, behind [32]uint8) {
	for n := range masks {
		masks[n] = ^uint64(0)
		if n < 8 {
			masks[n] = 1<<(8*n) - 1
		} else {
			behind[n] = uint8(n - 8)
		}
	}
	return masks, behind
}()

// endsAt are the ends of a name of n bytes, less than 32.
func endsAt(b start, at, n int) (first, last uint64) {
	mask := nameMasks[n&31]
	return word(b, at) & mask, word(b, at+int(nameBehind[n&31])) & mask
}

// among finds the label of the name with these ends, without a branch.
func (f *finder) among(n int, first, last uint64) label {
	l := f.slots[(first+bits.RotateLeft64(last, 23))*f.factor>>(64-slotBits)]
	e := &f.ends[l]
	other := (e.n ^ uint64(n)) | (e.first ^ first) | (e.last ^ last)
	return l & (label((other|-other)>>63) - 1)
}
