package otlp

import (
	"math"

	"github.com/spanstatsd/spanstatsd/internal/sketch"
	"google.golang.org/protobuf/encoding/protowire"
)

// appendNumber appends the body of a NumberDataPoint: how many spans there were.
func appendNumber(b []byte, list []byte, w window, calls uint64) []byte {
	b = appendFixed(b, fieldStart, w.start)
	b = appendFixed(b, fieldTime, w.end)
	b = appendAttributes(b, fieldNumberAttributes, list)
	return appendFixed(b, fieldNumberInt, min(calls, math.MaxInt64))
}

// appendHistogram appends the body of an ExponentialHistogramDataPoint. What is 0 is left
// out, as protobuf does.
func appendHistogram(b []byte, list []byte, w window, h sketch.Buckets, seconds float64) []byte {
	b = append(b, list...)
	b = appendFixed(b, fieldStart, w.start)
	b = appendFixed(b, fieldTime, w.end)
	b = appendFixed(b, fieldPointCount, h.Spans)
	b = appendDouble(b, fieldPointSum, seconds)
	if h.Scale != 0 {
		b = appendVarint(b, fieldPointScale, protowire.EncodeZigZag(int64(h.Scale)))
	}
	if h.Zeros != 0 {
		b = appendFixed(b, fieldPointZeros, h.Zeros)
	}
	if len(h.Counts) > 0 {
		b = appendBuckets(b, h)
	}
	return b
}

// appendBuckets appends the positive buckets, counts packed. Their length stands before
// them, so it is added up first.
func appendBuckets(b []byte, h sketch.Buckets) []byte {
	counts := 0
	for _, n := range h.Counts {
		counts += protowire.SizeVarint(n)
	}
	offset := protowire.EncodeZigZag(int64(h.Offset))
	size := protowire.SizeTag(fieldBucketCounts) + protowire.SizeBytes(counts)
	if offset != 0 {
		size += protowire.SizeTag(fieldBucketOffset) + protowire.SizeVarint(offset)
	}
	b = protowire.AppendTag(b, fieldPointPositive, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(size))
	if offset != 0 {
		b = appendVarint(b, fieldBucketOffset, offset)
	}
	b = protowire.AppendTag(b, fieldBucketCounts, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(counts))
	for _, n := range h.Counts {
		b = protowire.AppendVarint(b, n)
	}
	return b
}
