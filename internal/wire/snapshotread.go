package wire

import (
	"math"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// minSnapshot is the fewest bytes that a snapshot can have: an array header and four
// values of one byte.
const minSnapshot = 5

// readSnapshot reads a snapshot of any shape. Where it is malformed, it says
// what was expected after the n bytes that were right.
func readSnapshot(b []byte, s *Snapshot) (n int, expected string) {
	count, n := readArray(b)
	if count != 4 && count != 5 {
		return 0, "an array of four or five"
	}
	step := readSnapshotKey(b[n:], s)
	if step == 0 {
		return n, "a key, as a byte string or a number below 2^32"
	}
	n += step
	if step = readDuration(b[n:], s); step == 0 {
		return n, "an integer as the duration"
	}
	n += step
	if step = readEnd(b[n:], s); step == 0 {
		return n, "an integer that fits in 64 signed bits as the end"
	}
	n += step
	if step = readFlags(b[n:], s); step == 0 {
		return n, "flags with no bits but 0 and 1"
	}
	n += step
	s.Weight = 1
	if count == 5 {
		if step = readWeight(b[n:], s); step == 0 {
			return n, "a weight above 0 and at most 2^32"
		}
		n += step
	}
	return n, ""
}

func readSnapshotKey(b []byte, s *Snapshot) (n int) {
	s.Number, s.Numbered = 0, false
	if s.Key, n = readBin(b); n != 0 {
		return n
	}
	s.Numbered = true
	s.Number, n = readKeyNumber(b)
	return n
}

func readKeyNumber(b []byte) (number uint32, n int) {
	v, isNegative, n := readInteger(b)
	if isNegative || v > math.MaxUint32 {
		return 0, 0
	}
	return uint32(v), n
}

// readDuration reads any integer. Less than nothing, which a clock that was set
// back during the span makes, is nothing.
func readDuration(b []byte, s *Snapshot) (n int) {
	v, isNegative, n := readInteger(b)
	if isNegative {
		v = 0
	}
	s.Duration = v
	return n
}

func readEnd(b []byte, s *Snapshot) (n int) {
	v, isNegative, n := readInteger(b)
	if !isNegative && v > math.MaxInt64 {
		return 0
	}
	s.End = int64(v)
	return n
}

func readFlags(b []byte, s *Snapshot) (n int) {
	v, isNegative, n := readInteger(b)
	if isNegative || v > uint64(span.KnownFlags) {
		return 0
	}
	s.Flags = span.Flags(v)
	return n
}

func readWeight(b []byte, s *Snapshot) (n int) {
	weight, n := readNumber(b)
	if !ValidWeight(weight) {
		return 0
	}
	s.Weight = weight
	return n
}
