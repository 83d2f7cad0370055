package span

import (
	"encoding/binary"
	"math/bits"
)

// Most of making a key normal is finding that its texts can stay. So a text is looked at
// eight bytes at a time, as one number: what is found of a byte stands in its highest bit.
// The last eight bytes of a text overlap those before them.
const (
	wordBytes = 8
	ones      = 0x0101010101010101
	highs     = 0x80 * ones
)

// wordAt are eight bytes of a text, the first in the lowest bits.
func wordAt(text string, at int) uint64 {
	return binary.LittleEndian.Uint64([]byte(text[at : at+wordBytes]))
}

// within says of each byte of a word whether it lies between two of ASCII. It holds where
// all eight are ASCII.
func within(word uint64, from, to byte) uint64 {
	return (word + ones*uint64(0x80-from)) &^ (word + ones*uint64(0x7f-to)) & highs
}

// beyondASCII is how many bytes of a text are not ASCII.
func beyondASCII(text string) (count int) {
	for ; len(text) >= wordBytes; text = text[wordBytes:] {
		count += bits.OnesCount64(wordAt(text, 0) & highs)
	}
	for i := range len(text) {
		count += int(text[i] >> 7)
	}
	return count
}
