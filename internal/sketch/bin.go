package sketch

import (
	"math"

	"github.com/DataDog/sketches-go/ddsketch/mapping"
)

// The parameters of the agent's own sketches. Anything else would still be
// accepted, but would not merge bin for bin with what the agent computes. So is
// the truncation: the agent clears the low bits of a duration before its sketch
// sees it; sign, exponent and nine bits of mantissa survive, rounding down.
const (
	RelativeAccuracy = 0.01
	maxBins          = 2048 // the lowest are collapsed beyond that
	allBins          = 2218 // from 0, of 1 ns, to that of the largest uint64
)

// logarithmic is the mapping of every sketch.
var logarithmic = func() mapping.IndexMapping {
	m, err := mapping.NewLogarithmicMapping(RelativeAccuracy)
	if err != nil {
		panic("BUG: sketch mapping: " + err.Error())
	}
	return m
}()

const (
	truncatedBits = 43 // what truncation clears
	mantissaBits  = 9  // what it leaves of the mantissa
	// one is the number 1 without its truncated bits, the smallest duration
	// that has a bin. The largest, a uint64 rounded up, is 2^64.
	one = 1023 << mantissaBits
	// steps are the values that truncation leaves, up to that: 512 to each power of two.
	steps = 64<<mantissaBits + 1
)

// stepOf is the number of the value that truncation leaves of a duration, which is not 0.
func stepOf(nanoseconds uint64) uint16 {
	return uint16(math.Float64bits(float64(nanoseconds))>>truncatedBits - one)
}

// Truncate is what truncation leaves of a duration, in nanoseconds: what a bin counts of it, or
// a histogram's bucket.
func Truncate(nanoseconds uint64) float64 {
	return math.Float64frombits(math.Float64bits(float64(nanoseconds)) >> truncatedBits << truncatedBits)
}

// stepValue is that value, in nanoseconds.
func stepValue(step int) float64 { return math.Float64frombits((one + uint64(step)) << truncatedBits) }
