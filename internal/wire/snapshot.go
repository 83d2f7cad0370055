package wire

import (
	"encoding/binary"
	"math"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire/msgpack"
)

// MaxWeight is the largest weight of a snapshot.
const MaxWeight = 1 << 32

// Snapshot is what a tracer sends of one finished span, as it lies on the wire.
type Snapshot struct {
	Key      []byte // the key's bytes, not decoded; nil where the key is numbered
	Number   uint32 // the number that a define gave to the key
	Numbered bool   // whether the key is Number
	Duration uint64 // nanoseconds
	End      int64  // nanoseconds since the Unix epoch
	Flags    span.Flags
	Weight   float64 // how many spans it stands for
}

// ValidWeight reports whether a snapshot may carry this weight. It does so
// false for NaN, too.
func ValidWeight(weight float64) bool {
	return weight > 0 && weight <= MaxWeight
}

// BeginSpans begins a batch: append its snapshots, then call EndSpans with the
// length that dst had before.
func BeginSpans(dst []byte) []byte { return beginCounted(dst, TypeSpans) }

// EndSpans finishes the batch that begins at dst[start] and holds count
// snapshots.
func EndSpans(dst []byte, start, count int) { endCounted(dst, start, count) }

// AppendWhole appends a snapshot with all of its key's bytes, as AppendKey
// wrote them. The weight must be valid: the reader refuses any other. A flag
// that the protocol does not know is left out.
func AppendWhole(dst, key []byte, duration uint64, end int64, flags span.Flags, weight float64) []byte {
	dst = appendBin(append(dst, snapshotHeader(weight)), key)
	return appendFacts(dst, duration, end, flags, weight)
}

// AppendNumbered is AppendWhole with the number that stands for the key.
func AppendNumbered(
	dst []byte, number uint32, duration uint64, end int64, flags span.Flags, weight float64,
) []byte {
	if weight == 1 && end > math.MaxUint32 && cap(dst)-len(dst) >= commonMost {
		room := dst[len(dst):cap(dst)]
		return dst[:len(dst)+putCommon((*[commonMost]byte)(room), number, duration, end, flags)]
	}
	dst = appendUint(append(dst, snapshotHeader(weight)), uint64(number))
	return appendFacts(dst, duration, end, flags, weight)
}

// commonMost is the most bytes of a numbered snapshot without a weight: its
// header, number, duration, end and flags.
const commonMost = 1 + 5 + 9 + 9 + 1

// putCommon writes a numbered snapshot as nearly all are, without a weight and
// with an end that takes 64 bits, and returns its length.
func putCommon(b *[commonMost]byte, number uint32, duration uint64, end int64, flags span.Flags) int {
	b[0], b[1] = msgpack.FixArray|4, byte(number)
	at := 2
	if number >= msgpack.FixMap {
		at = 1 + putUint((*[9]byte)(b[1:]), uint64(number))
	}
	if duration > math.MaxUint16 && duration <= math.MaxUint32 {
		b[at] = msgpack.Uint32
		binary.BigEndian.PutUint32(b[at+1:], uint32(duration))
		at += 5
	} else {
		at += putUint((*[9]byte)(b[at:]), duration)
	}
	tail := (*[10]byte)(b[at:])
	tail[0] = msgpack.Uint64
	binary.BigEndian.PutUint64(tail[1:], uint64(end))
	tail[9] = byte(flags & span.KnownFlags)
	return at + len(tail)
}

// snapshotHeader leaves the weight out where it is the 1 that its absence says.
func snapshotHeader(weight float64) byte {
	if weight == 1 {
		return msgpack.FixArray | 4
	}
	return msgpack.FixArray | 5
}

func appendFacts(dst []byte, duration uint64, end int64, flags span.Flags, weight float64) []byte {
	dst = appendUint(dst, duration)
	dst = appendInt(dst, end)
	dst = append(dst, byte(flags&span.KnownFlags))
	if weight != 1 {
		dst = appendNumber(dst, weight)
	}
	return dst
}

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
		s.Key = r.Bin().Bytes(body)
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
