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

// BeginSpans appends the start of a spans message. The caller then appends snapshots and calls EndSpans.
func BeginSpans(dst []byte) []byte { return beginList(dst, TypeSpans) }

// EndSpans completes the spans message that starts at dst[start] and contains count snapshots.
func EndSpans(dst []byte, start, count int) { endList(dst, start, count) }

// AppendWhole appends a snapshot that contains its key, as encoded by AppendKey. It omits flags that are not part of
// the protocol. The weight must be valid, because the daemon rejects the message otherwise.
func AppendWhole(dst, key []byte, duration uint64, end int64, flags span.Flags, weight float64) []byte {
	dst = append(dst, snapshotHeader(weight))
	dst = appendBin(dst, key)
	return appendMeasurements(dst, duration, end, flags, weight)
}

// AppendNumbered appends a snapshot, a finished span, that contains the number of its key. An earlier message must have
// assigned the number to the key.
func AppendNumbered(
	dst []byte, number uint32, duration uint64, end int64, flags span.Flags, weight float64,
) []byte {
	hasLongEnd := end > math.MaxUint32 // encoded in 64 bits, as any time after the first seconds of 1970
	hasSpace := cap(dst)-len(dst) >= maxCommonLen
	isCommon := weight == 1 && hasLongEnd && hasSpace
	if isCommon { // nearly always; putCommonSnapshot is faster
		spare := dst[len(dst):cap(dst)]
		size := putCommonSnapshot((*[maxCommonLen]byte)(spare), number, duration, end, flags)
		return dst[:len(dst)+size]
	}
	dst = append(dst, snapshotHeader(weight))
	dst = appendUint(dst, uint64(number))
	return appendMeasurements(dst, duration, end, flags, weight)
}

// Array headers of a snapshot. The weight, the last element, is omitted if it is 1.
const (
	headerWithoutWeight = msgpack.FixArray | 4
	headerWithWeight    = msgpack.FixArray | 5
)

// endAndFlagsLen is the length of an end time that needs 64 bits, followed by flags.
const endAndFlagsLen = 9 + 1

// maxCommonLen is the maximum length of a snapshot that putCommonSnapshot writes: the array header, the number of the
// key, the duration, the end time and the flags.
const maxCommonLen = 1 + 5 + 9 + endAndFlagsLen

// maxOneByteNumber is the largest integer that msgpack encodes in one byte.
const maxOneByteNumber = 127

// putCommonSnapshot writes a span with weight 1 to the start of b, and returns the encoded length. number is that of the
// span's key. end must be more than math.MaxUint32, because it is always written with 64 bits.
//
// The function is on the hot path of clients. So it calls putUint only for less common numbers and durations, and
// converts parts of b to pointers to arrays, for which the compiler omits bounds checks.
func putCommonSnapshot(b *[maxCommonLen]byte, number uint32, duration uint64, end int64, flags span.Flags) int {
	b[0] = headerWithoutWeight
	size := 1 // bytes that are written
	if number <= maxOneByteNumber {
		b[1] = byte(number)
		size++
	} else {
		size += putUint((*[maxUintLen]byte)(b[1:]), uint64(number))
	}
	hasCommonDuration := duration > math.MaxUint16 && duration <= math.MaxUint32 // 66 µs to 4.3 s
	if hasCommonDuration {
		b[size] = msgpack.Uint32
		binary.BigEndian.PutUint32(b[size+1:], uint32(duration))
		size += 1 + 4
	} else {
		size += putUint((*[maxUintLen]byte)(b[size:]), duration)
	}
	endAndFlags := (*[endAndFlagsLen]byte)(b[size:])
	endAndFlags[0] = msgpack.Uint64
	binary.BigEndian.PutUint64(endAndFlags[1:], uint64(end))
	endAndFlags[endAndFlagsLen-1] = byte(flags & span.KnownFlags)
	return size + endAndFlagsLen
}

// snapshotHeader returns the array header of a snapshot. The weight is omitted if it is 1.
func snapshotHeader(weight float64) byte {
	if weight == 1 {
		return headerWithoutWeight
	}
	return headerWithWeight
}

// appendMeasurements appends the elements of a snapshot that follow the key. It omits a weight of 1.
func appendMeasurements(dst []byte, duration uint64, end int64, flags span.Flags, weight float64) []byte {
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

// readSnapshot reads a snapshot in any encoding into s. If the snapshot is malformed, r fails, and expected describes the
// value that should have been found, for an error message.
func readSnapshot(r *msgpack.Reader, body []byte, s *Snapshot) (expected string) {
	count := r.Array()
	if count != 4 && count != 5 {
		r.Fail()
		return "an array of four or five"
	}
	s.Key, s.Number, s.Numbered = nil, 0, !msgpack.IsBin(r.Peek())
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
	body        []byte
	pos         int // position of the next snapshot in body
	unreadCount int // number of snapshots that have not been read
	count       int // number of snapshots in the message
	err         error
}

// WalkSpans returns a walker at the first snapshot of a spans message.
func WalkSpans(body []byte) (SpansWalker, error) {
	count, rest, err := readArrayHeader("walk spans", body, minSnapshotLen)
	return SpansWalker{body: rest, unreadCount: count, count: count}, err
}

// CountSpans returns the number of spans in a message, which is stated at the start of its body. head is the first part
// of the body, and restLen is the length of the rest. CountSpans returns 0 if the start of the body is malformed, or if
// the body is too short for the spans.
func CountSpans(head []byte, restLen int) uint64 {
	const len16, len32 = 1 + 2, 1 + 4 // lengths of array headers with a count of 16 or 32 bits
	count := 0
	switch {
	case len(head) == 0:
		return 0
	case head[0]&0xf0 == msgpack.FixArray:
		count = int(head[0] & 0x0f) // the low four bits
	case head[0] == msgpack.Array16 && len(head) >= len16:
		count = int(binary.BigEndian.Uint16(head[1:]))
	case head[0] == msgpack.Array32 && len(head) >= len32:
		count = int(binary.BigEndian.Uint32(head[1:]))
	}
	maxCount := (len(head) + restLen) / minSnapshotLen
	if count > maxCount {
		return 0
	}
	return uint64(count)
}

// readArrayHeader reads the array header at the start of body, and returns the number of elements and the bytes after
// the header. Each element has at least minElementLen bytes. It returns an error if body is too short for the elements.
func readArrayHeader(operation string, body []byte, minElementLen int) (count int, rest []byte, err error) {
	r := msgpack.NewReader(body)
	count = r.Array()
	maxCount := r.Unread() / minElementLen
	if r.Failed() || count > maxCount {
		return 0, nil, malformed(operation, len(body), "expected an array with at least %d bytes per element, found %s",
			minElementLen, describeByte(body, 0))
	}
	return count, body[r.Pos():], nil
}

// Len returns the number of snapshots according to the header of the message. Some of them can be malformed.
func (w *SpansWalker) Len() int { return w.count }

// Err returns the error that ended the walk, or nil.
func (w *SpansWalker) Err() error { return w.err }

// Unread returns the number of bytes that have not been read.
func (w *SpansWalker) Unread() int { return len(w.body) - w.pos }

// Next decodes the next span of the message into s, which then refers to the memory of the message. It returns
// false at the end of the message or after an error, which Err returns.
func (w *SpansWalker) Next(s *Snapshot) bool {
	if w.unreadCount == 0 {
		w.checkEnd()
		return false
	}
	size, isCommon := readCommonSnapshot(w.body[w.pos:], s)
	if isCommon {
		w.pos += size
		w.unreadCount--
		return true
	}
	r := msgpack.NewReaderAt(w.body, w.pos)
	expectedValue := readSnapshot(&r, w.body, s) // slower, but reads any encoding
	w.pos = r.Pos()
	if r.Failed() {
		w.fail(expectedValue)
		return false
	}
	w.unreadCount--
	return true
}

// maxCommonRestLen is the maximum length of the elements that readCommonSnapshot reads after the key: a duration of 32
// bits, an end time and flags.
const maxCommonRestLen = 5 + endAndFlagsLen

// readCommonSnapshot decodes the snapshot at the start of b into s, if it has one of the most common encodings. It
// returns the length of the snapshot. ok is false if the snapshot has another encoding or is malformed; the caller must
// use readSnapshot then, which reads any encoding but is slower.
//
// A common encoding has no weight, a key as a short byte string or a number of at most 16 bits, a duration of 16 or 32
// bits, and an end time of 64 bits.
func readCommonSnapshot(b []byte, s *Snapshot) (size int, ok bool) {
	if len(b) < 4 || b[0] != headerWithoutWeight {
		return 0, false
	}
	s.Key, s.Number, s.Numbered = nil, 0, true
	keyEnd := 0 // position after the key
	switch lead := b[1]; {
	case lead == msgpack.Bin8:
		keyLen := int(b[2])
		keyEnd = 3 + keyLen
		if len(b) < keyEnd {
			return 0, false
		}
		s.Key, s.Numbered = b[3:keyEnd:keyEnd], false
	case lead < msgpack.FixMap:
		s.Number = uint32(lead)
		keyEnd = 2
	case lead == msgpack.Uint8:
		s.Number = uint32(b[2])
		keyEnd = 3
	case lead == msgpack.Uint16:
		s.Number = uint32(binary.BigEndian.Uint16(b[2:]))
		keyEnd = 4
	default:
		return 0, false
	}

	if len(b) < keyEnd+maxCommonRestLen {
		return 0, false
	}
	rest := (*[maxCommonRestLen]byte)(b[keyEnd:])
	var endAndFlags *[endAndFlagsLen]byte
	durationLen := 0
	switch rest[0] {
	case msgpack.Uint32:
		s.Duration = uint64(binary.BigEndian.Uint32(rest[1:]))
		durationLen = 5
		endAndFlags = (*[endAndFlagsLen]byte)(rest[5:])
	case msgpack.Uint16:
		s.Duration = uint64(binary.BigEndian.Uint16(rest[1:]))
		durationLen = 3
		endAndFlags = (*[endAndFlagsLen]byte)(rest[3:])
	default:
		return 0, false
	}

	end := binary.BigEndian.Uint64(endAndFlags[1:])
	flags := span.Flags(endAndFlags[endAndFlagsLen-1])
	if endAndFlags[0] != msgpack.Uint64 || end > math.MaxInt64 || flags > span.KnownFlags {
		return 0, false
	}
	s.End = int64(end)
	s.Flags = flags
	s.Weight = 1
	return keyEnd + durationLen + endAndFlagsLen, true
}

// checkEnd sets the error of the walker if bytes follow the last snapshot.
func (w *SpansWalker) checkEnd() {
	if unreadBytes := w.Unread(); unreadBytes != 0 && w.err == nil {
		w.err = malformed("walk spans", unreadBytes, "%d bytes follow the last of %d snapshots", unreadBytes, w.count)
	}
}

// fail ends the walk with an error at the current position, which is within a snapshot. expected describes the value that
// should have been found there.
func (w *SpansWalker) fail(expected string) {
	w.err = malformed("walk spans", w.Unread(), "snapshot %d of %d: expected %s, found %s",
		w.count-w.unreadCount, w.count, expected, describeByte(w.body, w.pos))
	w.pos, w.unreadCount = len(w.body), 0
}
