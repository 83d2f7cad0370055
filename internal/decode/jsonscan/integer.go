package jsonscan

import (
	"math"
	"strconv"
)

// Integer reads an integer of 64 bits, as its two's complement where it is negative. One may be
// written with an exponent, or as 1.0.
func Integer(said []byte) (uint64, bool) {
	if n, err := strconv.ParseInt(string(said), 10, 64); err == nil {
		return uint64(n), true
	}
	if n, err := strconv.ParseUint(string(said), 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(string(said), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) >= 1<<63 {
		return 0, false
	}
	return uint64(int64(f)), true
}
