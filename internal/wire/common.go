package wire

import (
	"encoding/binary"

	"github.com/spanstatsd/spanstatsd/internal/msgpack"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Common is a snapshot of the shape that nearly all have: no weight, a key of 1 to 255
// bytes or a number below 65536, a duration from 256 ns to 4 s, an end after 1970, known
// flags.
type Common struct {
	End      int64
	Duration uint32
	Key      uint32 // its number, or where its bytes begin in the body
	KeyLen   uint32 // 0: it is a number
	Flags    uint32
}

const (
	// commonHead is the most that comes before a key's bytes, or a number takes.
	commonHead = 1 + 3
	// commonFacts is a duration of four bytes, an end of eight, and flags: the room
	// below which the common shape is not tried.
	commonFacts = 5 + commonEnd
	commonEnd   = 9 + 1
)

// Commons reads snapshots up to the first that is not of the common shape, well formed
// or not, as many as there is room for, and returns how many.
//
// It reads several in a loop of its own, because a loop that also does something with
// each of them runs out of registers.
func (w *SpansWalker) Commons(to []Common) int {
	body, at := w.body, w.at
	to = to[:min(len(to), w.left)]
	read := 0
walk:
	for i := range to {
		if len(body)-at < commonHead {
			break
		}
		head := (*[commonHead]byte)(body[at:])
		if head[0] != msgpack.FixArray|4 {
			break
		}
		c, facts, next := &to[i], at, 0
		switch lead := head[1]; {
		case lead == msgpack.Bin8 && head[2] != 0:
			c.Key, c.KeyLen = uint32(at+3), uint32(head[2])
			facts += 3 + int(head[2])
		case lead < msgpack.FixMap:
			c.Key, c.KeyLen = uint32(lead), 0
			facts += 2
		case lead == msgpack.Uint16:
			c.Key, c.KeyLen = uint32(binary.BigEndian.Uint16(head[2:])), 0
			facts += 4
		case lead == msgpack.Uint8:
			c.Key, c.KeyLen = uint32(head[2]), 0
			facts += 3
		default:
			break walk
		}
		if len(body)-facts < commonFacts {
			break
		}
		duration := (*[commonFacts]byte)(body[facts:])
		end := (*[commonEnd]byte)(duration[5:])
		switch duration[0] {
		case msgpack.Uint32:
			c.Duration = binary.BigEndian.Uint32(duration[1:])
			next = facts + 5 + commonEnd
		case msgpack.Uint16:
			c.Duration = uint32(binary.BigEndian.Uint16(duration[1:]))
			end = (*[commonEnd]byte)(duration[3:])
			next = facts + 3 + commonEnd
		default:
			break walk
		}
		if end[0] != msgpack.Uint64 || end[1] >= 0x80 || end[9] > byte(span.KnownFlags) {
			break
		}
		c.End, c.Flags = int64(binary.BigEndian.Uint64(end[1:])), uint32(end[9])
		read, at = read+1, next
	}
	w.left -= read
	w.at = at
	return read
}

// Bytes are those of a key that Commons has found.
func (w *SpansWalker) Bytes(c *Common) []byte {
	end := int(c.Key) + int(c.KeyLen)
	return w.body[c.Key:end:end]
}
