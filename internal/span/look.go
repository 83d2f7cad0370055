package span

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"unsafe"
)

// A label that is met is looked at once: its hash and whether it is ASCII come of
// the same eight bytes at a time. Two calls, each with its own way through the
// bytes, cost twice as much, and a key has half a dozen labels.

// secret is of this process, so that nobody outside can choose labels that collide.
var secret = [3]uint64{rand.Uint64(), rand.Uint64(), rand.Uint64()}

const (
	ones = 0x0101010101010101
	high = 0x80 * ones
)

// Look hashes a label and reports whether all of it is ASCII. The hash means nothing
// in another process.
func Look(text string) (hash uint64, isASCII bool) {
	b := unsafe.Slice(unsafe.StringData(text), len(text))
	n := len(b)
	var x, y, seen uint64
	h := secret[0]
	switch {
	case n > 16:
		for rest := b; len(rest) > 16; rest = rest[16:] {
			x, y = binary.LittleEndian.Uint64(rest), binary.LittleEndian.Uint64(rest[8:])
			seen |= x | y
			h = fold(x^secret[1], y^h)
		}
		x, y = binary.LittleEndian.Uint64(b[n-16:]), binary.LittleEndian.Uint64(b[n-8:])
	case n >= 8:
		x, y = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[n-8:])
	case n >= 4:
		x, y = uint64(binary.LittleEndian.Uint32(b)), uint64(binary.LittleEndian.Uint32(b[n-4:]))
	case n > 0:
		x, y = uint64(b[0]), uint64(b[n/2])<<8|uint64(b[n-1])
	}
	seen |= x | y
	return fold(secret[1]^uint64(n), fold(x^secret[2], y^h)), seen&high == 0
}

// Tail hashes the last eight bytes of a label and how long it is, or all of a shorter one.
// The labels of a flood differ mostly there, and it takes a fifth of a look.
func Tail(text string) uint64 {
	if len(text) < 8 {
		hash, _ := Look(text)
		return hash
	}
	return TailOf(binary.LittleEndian.Uint64(unsafe.Slice(unsafe.StringData(text), len(text))[len(text)-8:]), len(text))
}

// TailOf is the Tail of a label of so many bytes, at least eight, that ends in those of the word.
func TailOf(last uint64, length int) uint64 { return fold(last^secret[2], uint64(length)^secret[0]) }

// LookService is Look at the name of a service: besides its hash, whether it can stay as
// it is. A byte that is not ASCII spoils its neighbour's mark, but is seen itself.
func LookService(text string) (hash uint64, isName bool) {
	b := unsafe.Slice(unsafe.StringData(text), len(text))
	n := len(b)
	if n < 8 {
		hash, isName = Look(text)
		return hash, isName && isServiceName(text)
	}
	h, all, seen, rest := secret[0], ^uint64(0), uint64(0), b
	for ; len(rest) > 16; rest = rest[16:] {
		x, y := binary.LittleEndian.Uint64(rest), binary.LittleEndian.Uint64(rest[8:])
		all, seen = all&isServiceWord(x)&isServiceWord(y), seen|x|y
		h = fold(x^secret[1], y^h)
	}
	x, y := binary.LittleEndian.Uint64(b[max(n-16, 0):]), binary.LittleEndian.Uint64(b[n-8:])
	all, seen = all&isServiceWord(y), seen|x|y
	if len(rest) > 8 { // else the loop has seen x
		all &= isServiceWord(x)
	}
	return fold(secret[1]^uint64(n), fold(x^secret[2], y^h)), all&high == high && seen&high == 0 && n <= MaxService
}

// LookOperation is the same for the name of an operation. One with '_' is looked at twice.
// It stands here twice because a class that is passed as a function is called for each word.
func LookOperation(text string) (hash uint64, isName bool) {
	b := unsafe.Slice(unsafe.StringData(text), len(text))
	n := len(b)
	if n < 8 {
		hash, isName = Look(text)
		return hash, isName && IsOperationName(text)
	}
	h, all, seen, rest := secret[0], ^uint64(0), uint64(0), b
	for ; len(rest) > 16; rest = rest[16:] {
		x, y := binary.LittleEndian.Uint64(rest), binary.LittleEndian.Uint64(rest[8:])
		all, seen = all&isOperationWord(x)&isOperationWord(y), seen|x|y
		h = fold(x^secret[1], y^h)
	}
	x, y := binary.LittleEndian.Uint64(b[max(n-16, 0):]), binary.LittleEndian.Uint64(b[n-8:])
	all, seen = all&isOperationWord(y), seen|x|y
	if len(rest) > 8 { // else the loop has seen x
		all &= isOperationWord(x)
	}
	isName = all&high == high && seen&high == 0 && n <= MaxOperation && classes[b[0]]&letter != 0
	return fold(secret[1]^uint64(n), fold(x^secret[2], y^h)), isName || IsOperationName(text)
}

// fold multiplies, and makes one word of the two that this gives.
func fold(a, b uint64) uint64 {
	upper, lower := bits.Mul64(a, b)
	return upper ^ lower
}

// between marks, by its highest bit, each byte of a word of ASCII that lies between
// two others. The other bits mean nothing.
func between(word uint64, first, last byte) uint64 {
	return (word + uint64(0x80-first)*ones) &^ (word + uint64(0x7f-last)*ones)
}

// isServiceWord marks the bytes of a word of ASCII that may stand in the name of a
// service: a to z, and what lies from '-' to ':'.
func isServiceWord(word uint64) uint64 {
	return between(word, 'a', 'z') | between(word, '-', ':')
}

// isOperationWord marks those that may stand in the name of an operation whatever
// stands around them. There are others: '_' may, but not everywhere.
func isOperationWord(word uint64) uint64 {
	return between(word|' '*ones, 'a', 'z') | between(word, '0', '9') | between(word, '.', '.')
}

// isServiceText says whether a text of eight bytes and more is the name of a service.
// It asks for eight bytes at a time, for the last eight even where some were asked for
// already. A byte that is not ASCII spoils its neighbour's mark, but is seen itself.
func isServiceText(text string) bool {
	b := unsafe.Slice(unsafe.StringData(text), len(text))
	if len(b) < 8 {
		return false
	}
	last := binary.LittleEndian.Uint64(b[len(b)-8:])
	all, seen := isServiceWord(last), last
	for ; len(b) > 8; b = b[8:] {
		word := binary.LittleEndian.Uint64(b)
		all, seen = all&isServiceWord(word), seen|word
	}
	return all&high == high && seen&high == 0
}

// isOperationText says the same of the name of an operation, but for where it begins.
// It knows nothing of a name with '_'.
func isOperationText(text string) bool {
	b := unsafe.Slice(unsafe.StringData(text), len(text))
	if len(b) < 8 {
		return false
	}
	last := binary.LittleEndian.Uint64(b[len(b)-8:])
	all, seen := isOperationWord(last), last
	for ; len(b) > 8; b = b[8:] {
		word := binary.LittleEndian.Uint64(b)
		all, seen = all&isOperationWord(word), seen|word
	}
	return all&high == high && seen&high == 0
}
