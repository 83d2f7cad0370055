package tracestate

import "math"

// Never is the threshold of what is never kept. Thresholds and randomness have 56 bits, and a
// span is kept where its trace's randomness is not less than the threshold.
const Never = 1 << randomBits

const (
	randomBits = 56
	digits     = randomBits / 4 // in hexadecimal
)

// GrowthBytes is by how much a tracestate may become longer with another threshold.
const GrowthBytes = len("ot=th:,") + digits

// precision is how many digits a threshold has behind those that are all f. More would make a
// share more exact than anybody can tell, and each tracestate longer.
const precision = 4

// ThresholdOf is the threshold by which a share of all traces is kept.
func ThresholdOf(share float64) uint64 { return thresholdOf(share, precision) }

func thresholdOf(share float64, precision int) uint64 {
	switch {
	case share >= 1:
		return 0
	case share < 1.0/Never:
		return Never
	}
	_, exponent := math.Frexp(share)
	precision = min(precision-exponent/4, digits)
	threshold := Never - uint64(math.Round(share*Never))
	if cut := 4 * (digits - precision); cut > 0 {
		threshold = (threshold + 1<<(cut-1)) >> cut << cut
	}
	return threshold
}

// appendThreshold writes a threshold, below Never, without the zeros at its end.
func appendThreshold(dst []byte, threshold uint64) []byte {
	for left := threshold << (64 - randomBits); ; {
		dst = append(dst, "0123456789abcdef"[left>>60])
		if left <<= 4; left == 0 {
			return dst
		}
	}
}
