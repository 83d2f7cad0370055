package wire

import (
	"encoding/binary"
	"math"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire/msgpack"
)

// MaxWeight is the largest weight of a snapshot.
const MaxWeight = 1 << 32

// Snapshot is one finished span as it is encoded in a spans message.
type Snapshot struct {
	Key      []byte // encoded key; nil if Numbered
	Number   uint32 // number of the key from a define message, if Numbered
	Numbered bool   // the key is identified by Number
	Duration uint64 // nanoseconds
	End      int64  // nanoseconds since the Unix epoch
	Flags    span.Flags
	Weight   float64 // number of spans that this one represents
}

// ValidWeight reports whether a snapshot may have this weight. NaN is not valid.
func ValidWeight(weight float64) bool {
	return weight > 0 && weight <= MaxWeight
}

// BeginSpans appends the start of a spans message. The caller then appends snapshots, and calls
// EndSpans, whose argument start is the length of dst before BeginSpans.
func BeginSpans(dst []byte) []byte { return beginList(dst, TypeSpans) }

// EndSpans ends the spans message that starts at dst[start] and contains count snapshots.
func EndSpans(dst []byte, start, count int) { endList(dst, start, count) }

// AppendWhole appends a snapshot that contains its encoded key, as written by AppendKey. The weight must be
// valid, because the daemon rejects the message otherwise. Flags that are not part of the protocol are
// omitted.
func AppendWhole(dst, key []byte, duration uint64, end int64, flags span.Flags, weight float64) []byte {
	dst = appendBin(append(dst, snapshotHeader(weight)), key)
	return appendRest(dst, duration, end, flags, weight)
}

// AppendNumbered appends a snapshot with the number of its key. It is otherwise like AppendWhole.
func AppendNumbered(
	dst []byte, number uint32, duration uint64, end int64, flags span.Flags, weight float64,
) []byte {
	if weight == 1 && end > math.MaxUint32 && cap(dst)-len(dst) >= maxNumberedLen {
		unused := dst[len(dst):cap(dst)]
		return dst[:len(dst)+putNumbered((*[maxNumberedLen]byte)(unused), number, duration, end, flags)]
	}
	dst = appendUint(append(dst, snapshotHeader(weight)), uint64(number))
	return appendRest(dst, duration, end, flags, weight)
}

// maxNumberedLen is the maximum length of a numbered snapshot without a weight: its header, number,
// duration, end and flags.
const maxNumberedLen = 1 + 5 + 9 + 9 + 1

// putNumbered writes a numbered snapshot and returns its length. It is the fast path of AppendNumbered for the most
// frequent form: weight 1, which is omitted, and an end time that needs 64 bits. Each client publishes with it while
// it holds a lock.
func putNumbered(b *[maxNumberedLen]byte, number uint32, duration uint64, end int64, flags span.Flags) int {
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
	rest := (*[10]byte)(b[at:])
	rest[0] = msgpack.Uint64
	binary.BigEndian.PutUint64(rest[1:], uint64(end))
	rest[9] = byte(flags & span.KnownFlags)
	return at + len(rest)
}

// snapshotHeader returns the array header of a snapshot. The weight is omitted if it is 1.
func snapshotHeader(weight float64) byte {
	if weight == 1 {
		return msgpack.FixArray | 4
	}
	return msgpack.FixArray | 5
}

// appendRest appends the elements of a snapshot after its key.
func appendRest(dst []byte, duration uint64, end int64, flags span.Flags, weight float64) []byte {
	dst = appendUint(dst, duration)
	dst = appendInt(dst, end)
	dst = append(dst, byte(flags&span.KnownFlags))
	if weight != 1 {
		dst = appendNumber(dst, weight)
	}
	return dst
}

// minSnapshotLen is the minimum length of a snapshot: an array header and four values of one byte.
const minSnapshotLen = 5

// readSnapshot reads a snapshot in any encoding. If the reader fails, readSnapshot returns a description of
// the expected value for the error message.
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
		duration = 0 // the client's clock was set back during the span
	}
	s.Duration = duration
	if r.Failed() {
		return "an integer as the duration"
	}
	s.End = r.Int()
	if r.Failed() {
		return "an integer that fits in 64 signed bits as the end"
	}
	s.Flags = span.Flags(r.Uint(uint64(span.KnownFlags)))
	if r.Failed() {
		return "flags with no bits but 0 and 1"
	}
	s.Weight = 1
	if hasWeight := count == 5; hasWeight {
		readerAtWeight := *r
		s.Weight = r.Number()
		if !ValidWeight(s.Weight) {
			*r = readerAtWeight // fail at the weight, not after it
			r.Fail()
		}
	}
	return "a weight above 0 and at most 2^32"
}

// SpansWalker decodes the snapshots of one spans message in place.
type SpansWalker struct {
	body  []byte
	at    int // position of the next snapshot
	left  int // number of snapshots that have not been read
	count int // number of snapshots in the message
	err   error
}

// WalkSpans returns a walker at the first snapshot of a spans message.
func WalkSpans(body []byte) (SpansWalker, error) {
	count, rest, err := readArrayHeader("walk spans", body, minSnapshotLen)
	return SpansWalker{body: rest, left: count, count: count}, err
}

// CountSpans returns the number of snapshots that the array header of a spans message states. head is the start of the
// body, and following the number of bytes after head. CountSpans returns 0 if the body is too short for that number.
func CountSpans(head []byte, following int) uint64 {
	count := 0
	switch {
	case len(head) >= 1 && head[0]&0xf0 == msgpack.FixArray:
		count = int(head[0] & 0x0f)
	case len(head) >= 3 && head[0] == msgpack.Array16:
		count = int(binary.BigEndian.Uint16(head[1:]))
	case len(head) >= 5 && head[0] == msgpack.Array32:
		count = int(binary.BigEndian.Uint32(head[1:]))
	}
	bodyLen := len(head) + following
	if count > bodyLen/minSnapshotLen {
		return 0
	}
	return uint64(count)
}

// readArrayHeader reads the header of a body that is an array. It returns an error if the array has more elements of
// at least minLen bytes than can follow.
func readArrayHeader(operation string, body []byte, minLen int) (count int, rest []byte, err error) {
	r := msgpack.NewReader(body)
	count = r.Array()
	if r.Failed() || count > r.Left()/minLen {
		return 0, nil, malformed(operation, len(body), "expected an array of no more elements than fit, each "+
			"of at least %d bytes, found %s", minLen, describe(body, 0))
	}
	return count, body[r.At():], nil
}

// Len returns the number of snapshots according to the header of the message. The message is long enough
// for them, but some may be malformed.
func (w *SpansWalker) Len() int { return w.count }

// Err returns the error that ended the walk, or nil.
func (w *SpansWalker) Err() error { return w.err }

// Left returns the number of bytes that have not been read.
func (w *SpansWalker) Left() int { return len(w.body) - w.at }

// Next reads the next snapshot into s. Its key is a part of the message. Next returns false at the end of
// the message or after an error, which Err returns.
func (w *SpansWalker) Next(s *Snapshot) bool {
	if w.left == 0 {
		return w.finish()
	}
	if n := readCommonSnapshot(w.body[w.at:], s); n != 0 {
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

// commonRestLen is the maximum length of the elements after the key in the encoding that readCommonSnapshot
// reads: a duration, an end of nine bytes, and flags.
const commonRestLen = 5 + 9 + 1

// readCommonSnapshot reads a snapshot in the most frequent encoding, without a weight, and returns its
// length. It returns 0 for all other encodings and for malformed snapshots; the caller must use
// readSnapshot then. It exists because readSnapshot takes a call per value, and every span is read by one
// of the two.
func readCommonSnapshot(b []byte, s *Snapshot) int {
	if len(b) < 4 || b[0] != msgpack.FixArray|4 {
		return 0
	}
	at := 0
	switch lead := b[1]; {
	case lead == msgpack.Bin8:
		at = 3 + int(b[2])
		if len(b) < at+commonRestLen {
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
	if len(b) < at+commonRestLen {
		return 0
	}
	rest := (*[commonRestLen]byte)(b[at:])
	end := (*[9 + 1]byte)(rest[5:]) // and flags
	switch rest[0] {
	case msgpack.Uint32:
		s.Duration = uint64(binary.BigEndian.Uint32(rest[1:]))
		at += 5
	case msgpack.Uint16:
		s.Duration = uint64(binary.BigEndian.Uint16(rest[1:]))
		end = (*[9 + 1]byte)(rest[3:])
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

// finish ends the walk after the last snapshot, where the message must end, and returns false.
func (w *SpansWalker) finish() bool {
	if rest := len(w.body) - w.at; rest != 0 && w.err == nil {
		w.err = malformed("walk spans", rest, "%d bytes follow the last of %d snapshots", rest, w.count)
	}
	return false
}

// fail ends the walk with an error at the current position, within a snapshot, and returns false.
func (w *SpansWalker) fail(expected string) bool {
	w.err = malformed("walk spans", len(w.body)-w.at, "snapshot %d of %d: expected %s, found %s",
		w.count-w.left, w.count, expected, describe(w.body, w.at))
	w.at, w.left = len(w.body), 0
	return false
}
