package wire

import (
	"encoding/binary"

	"github.com/spanstatsd/spanstatsd/internal/msgpack"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// commonFacts is a duration of four bytes, an end of eight, and flags: what must follow a
// key for its snapshot to be read as a common one.
const commonFacts = 5 + 9 + 1

// readCommon reads a snapshot of the shape that nearly all have, without a weight, and
// returns how many bytes it has. It returns 0 for any other shape, well formed or not:
// readSnapshot reads all of them, and the same of these.
func readCommon(b []byte, s *Snapshot) int {
	if len(b) < 4 || b[0] != msgpack.FixArray|4 {
		return 0
	}
	at := 0
	switch lead := b[1]; {
	case lead == msgpack.Bin8:
		at = 3 + int(b[2])
		if len(b) < at+commonFacts {
			return 0
		}
		s.Key, s.Number, s.Numbered = b[3:at:at], 0, false
	case lead < msgpack.FixMap:
		s.Key, s.Number, s.Numbered, at = nil, uint32(lead), true, 2
	case lead == msgpack.Uint8:
		s.Key, s.Number, s.Numbered, at = nil, uint32(b[2]), true, 3
	case lead == msgpack.Uint16:
		s.Key, s.Number, s.Numbered, at = nil, uint32(binary.BigEndian.Uint16(b[2:])), true, 4
	default:
		return 0
	}
	if len(b) < at+commonFacts {
		return 0
	}
	facts := (*[commonFacts]byte)(b[at:])
	end := (*[9 + 1]byte)(facts[5:])
	switch facts[0] {
	case msgpack.Uint32:
		s.Duration = uint64(binary.BigEndian.Uint32(facts[1:]))
		at += 5
	case msgpack.Uint16:
		s.Duration = uint64(binary.BigEndian.Uint16(facts[1:]))
		end = (*[9 + 1]byte)(facts[3:])
		at += 3
	default:
		return 0
	}
	if end[0] != msgpack.Uint64 || end[1] >= 0x80 || end[9] > byte(span.KnownFlags) {
		return 0
	}
	s.End, s.Flags, s.Weight = int64(binary.BigEndian.Uint64(end[1:])), span.Flags(end[9]), 1
	return at + len(end)
}
