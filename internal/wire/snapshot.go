package wire

import (
	"encoding/binary"
	"math"

	"github.com/spanstatsd/spanstatsd/internal/msgpack"
	"github.com/spanstatsd/spanstatsd/internal/span"
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
