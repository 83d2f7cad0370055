package oteltraces

import "math"

// Thresholds and randomness have 56 bits. A span is kept where its trace's randomness is not
// less than the threshold.
const (
	randomBits = 56
	digits     = randomBits / 4 // in hexadecimal
	never      = 1 << randomBits
)

// precision is how many digits a threshold has behind those that are all f. More would make
// a share more exact than anybody can tell, and each tracestate longer.
const precision = 4

// thresholdOf is the threshold by which a share of all traces is kept.
func thresholdOf(share float64, precision int) uint64 {
	switch {
	case share >= 1:
		return 0
	case share < 1.0/never:
		return never
	}
	_, exponent := math.Frexp(share)
	precision = min(precision-exponent/4, digits)
	threshold := never - uint64(math.Round(share*never))
	if cut := 4 * (digits - precision); cut > 0 {
		threshold = (threshold + 1<<(cut-1)) >> cut << cut
	}
	return threshold
}

// appendThreshold writes a threshold, below never, without the zeros at its end.
func appendThreshold(dst []byte, threshold uint64) []byte {
	for left := threshold << (64 - randomBits); ; {
		dst = append(dst, "0123456789abcdef"[left>>60])
		if left <<= 4; left == 0 {
			return dst
		}
	}
}

// readHex reads digits in hexadecimal.
func readHex(text []byte) (v uint64, ok bool) {
	for _, c := range text {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		v = v<<4 | uint64(c)
	}
	return v, len(text) > 0 && len(text) <= 16
}
