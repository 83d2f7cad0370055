package wire

import (
	"encoding/binary"
	"math"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

const (
	// minSnapshot is the fewest bytes that a snapshot can have: an array header
	// and four values of one byte.
	minSnapshot = 5
	// commonRoom is the most that a snapshot of the common shape takes besides
	// the bytes of its key, and so the room below which it is not tried.
	commonRoom = 1 + 3 + commonFacts
	// commonFacts is a duration of four bytes, an end of eight, and flags.
	commonFacts = 5 + 9 + 1
)

// Common reads a snapshot of the shape that nearly all have: no weight, a key of at
// most 255 bytes or a number below 65536, a duration from 256 ns to 4 s, an end after
// 1970, known flags. It takes nothing of any other shape, well formed or not; see Next
// for those. The key is nil where it is a number. All comes in registers: to write a
// Snapshot and to read it again cost its reader about as much as the parsing.
func Common(b []byte) (n int, key []byte, number uint32, duration uint64, end int64, flags span.Flags) {
	if len(b) < commonRoom || b[0] != fixArray|4 {
		return 0, nil, 0, 0, 0, 0
	}
	switch lead := b[1]; {
	case lead == bin8:
		n = 3 + int(b[2])
		if len(b)-n < commonFacts {
			return 0, nil, 0, 0, 0, 0
		}
		key = b[3:n:n]
	case lead < fixMap:
		n, number = 2, uint32(lead)
	case lead == uint16v:
		n, number = 4, uint32(binary.BigEndian.Uint16(b[2:]))
	case lead == uint8v:
		n, number = 3, uint32(b[2])
	default:
		return 0, nil, 0, 0, 0, 0
	}
	switch b[n] {
	case uint32v:
		duration = uint64(binary.BigEndian.Uint32(b[n+1:]))
		n += 5
	case uint16v:
		duration = uint64(binary.BigEndian.Uint16(b[n+1:]))
		n += 3
	default:
		return 0, nil, 0, 0, 0, 0
	}
	facts := b[n : n+10]
	if facts[0] != uint64v || facts[1] >= 0x80 || facts[9] > byte(span.KnownFlags) {
		return 0, nil, 0, 0, 0, 0
	}
	return n + 10, key, number, duration, int64(binary.BigEndian.Uint64(facts[1:])), span.Flags(facts[9])
}

// readCommon is Common into a Snapshot.
func readCommon(b []byte, s *Snapshot) (n int) {
	n, key, number, duration, end, flags := Common(b)
	if n != 0 {
		s.Key, s.Number, s.Numbered = key, number, key == nil
		s.Duration, s.End, s.Flags, s.Weight = duration, end, flags, 1
	}
	return n
}

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
