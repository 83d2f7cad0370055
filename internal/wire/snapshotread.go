package wire

import (
	"math"

	"github.com/spanstatsd/spanstatsd/internal/msgpack"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// minSnapshot is the fewest bytes that a snapshot can have: an array header and four
// values of one byte.
const minSnapshot = 5

// readSnapshot reads a snapshot of any shape. Where the reader fails, it says what was
// expected there.
func readSnapshot(r *msgpack.Reader, body []byte, s *Snapshot) (expected string) {
	count := r.Array()
	if count != 4 && count != 5 {
		r.Fail()
		return "an array of four or five"
	}
	s.Key, s.Number, s.Numbered = nil, 0, !msgpack.IsBin(r.Lead())
	if s.Numbered {
		s.Number = uint32(r.Uint(math.MaxUint32))
	} else {
		s.Key = r.Bin().Of(body)
	}
	if r.Failed() {
		return "a key, as a byte string or a number below 2^32"
	}
	duration, isNegative := r.Integer()
	if isNegative {
		duration = 0 // a clock was set back during the span
	}
	if s.Duration = duration; r.Failed() {
		return "an integer as the duration"
	}
	if s.End = r.Int(); r.Failed() {
		return "an integer that fits in 64 signed bits as the end"
	}
	if s.Flags = span.Flags(r.Uint(uint64(span.KnownFlags))); r.Failed() {
		return "flags with no bits but 0 and 1"
	}
	s.Weight = 1
	if count == 5 {
		before := *r
		if s.Weight = r.Number(); !ValidWeight(s.Weight) {
			*r = before // the fault is this number, not what follows it
			r.Fail()
		}
	}
	return "a weight above 0 and at most 2^32"
}
