package wire

import (
	"encoding/binary"

	"github.com/spanstatsd/spanstatsd/internal/msgpack"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// SpansWalker walks the snapshots of one batch in place.
type SpansWalker struct {
	body  []byte
	at    int // of the next snapshot
	left  int
	count int
	err   error
}

// WalkSpans begins to walk the body of a spans message.
func WalkSpans(body []byte) (SpansWalker, error) {
	count, rest, err := openArray("walk spans", body, minSnapshot)
	return SpansWalker{body: rest, left: count, count: count}, err
}

// CountSpans is how many snapshots the body of a spans message claims to hold of which the
// first bytes are these, and so many follow. A claim that can't be true counts as none.
func CountSpans(head []byte, more int) uint64 {
	count := 0
	switch {
	case len(head) >= 1 && head[0]&0xf0 == msgpack.FixArray:
		count = int(head[0] & 0x0f)
	case len(head) >= 3 && head[0] == msgpack.Array16:
		count = int(binary.BigEndian.Uint16(head[1:]))
	case len(head) >= 5 && head[0] == msgpack.Array32:
		count = int(binary.BigEndian.Uint32(head[1:]))
	}
	if count > (len(head)+more)/minSnapshot {
		return 0
	}
	return uint64(count)
}

// openArray reads the header of a body that is an array, and believes its count
// only if that many elements of at least minLen bytes could follow.
func openArray(doing string, body []byte, minLen int) (count int, rest []byte, err error) {
	r := msgpack.NewReader(body)
	count = r.Array()
	if r.Failed() || count > r.Left()/minLen {
		return 0, nil, malformed(doing, len(body), "expected an array of no more elements than fit, each "+
			"of at least %d bytes, found %s", minLen, found(body, 0))
	}
	return count, body[r.At():], nil
}

// Len is how many snapshots the batch claims to hold. That many could lie in its
// bytes; whether they do, the walk finds out.
func (w *SpansWalker) Len() int { return w.count }

// Err is why the walk ended before the batch did, or nil.
func (w *SpansWalker) Err() error { return w.err }

// Left is how many bytes of the message are to come.
func (w *SpansWalker) Left() int { return len(w.body) - w.at }

// Next reads the next snapshot into s and reports whether there was one. A key
// aliases the message. After false, Err tells the end from a fault.
func (w *SpansWalker) Next(s *Snapshot) bool {
	if w.left == 0 {
		return w.stop()
	}
	if n := readCommon(w.body[w.at:], s); n != 0 {
		w.at += n
	} else {
		r := msgpack.NewReaderAt(w.body, w.at)
		expected := readSnapshot(&r, w.body, s)
		if w.at = r.At(); r.Failed() {
			return w.fail(expected)
		}
	}
	w.left--
	return true
}

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

// stop ends the walk after the last snapshot, where the message must end too.
func (w *SpansWalker) stop() bool {
	if rest := len(w.body) - w.at; rest != 0 && w.err == nil {
		w.err = malformed("walk spans", rest, "%d bytes follow the last of %d snapshots", rest, w.count)
	}
	return false
}

// fail ends the walk within a snapshot, behind what of it was right.
func (w *SpansWalker) fail(expected string) bool {
	w.err = malformed("walk spans", len(w.body)-w.at, "snapshot %d of %d: expected %s, found %s",
		w.count-w.left, w.count, expected, found(w.body, w.at))
	w.at, w.left = len(w.body), 0
	return false
}
