package wire

import "github.com/spanstatsd/spanstatsd/internal/span"

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
func AppendNumbered(dst []byte, number uint32, duration uint64, end int64, flags span.Flags, weight float64) []byte {
	dst = appendUint(append(dst, snapshotHeader(weight)), uint64(number))
	return appendFacts(dst, duration, end, flags, weight)
}

// snapshotHeader leaves the weight out where it is the 1 that its absence says.
func snapshotHeader(weight float64) byte {
	if weight == 1 {
		return fixArray | 4
	}
	return fixArray | 5
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
