package otlp

import (
	"encoding/binary"
	"math"

	"github.com/spanstatsd/spanstatsd/internal/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/flush/points"
	"github.com/spanstatsd/spanstatsd/internal/sketch"
	"google.golang.org/protobuf/encoding/protowire"
)

// appendNumber appends the body of a NumberDataPoint: how many spans there were.
func appendNumber(b []byte, p *points.Point, w window) []byte {
	b = appendFixed(b, fieldStart, w.start)
	b = appendFixed(b, fieldTime, w.end)
	b = appendAttributes(b, fieldNumberAttributes, p.Attributes)
	return appendFixed(b, fieldNumberInt, min(p.Calls, math.MaxInt64))
}

// appendHistogram appends the body of an ExponentialHistogramDataPoint. What is 0 is left
// out, as protobuf does.
func appendHistogram(b []byte, p *points.Point, w window) []byte {
	h := &p.Durations
	b = append(b, p.Attributes...)
	b = appendFixed(b, fieldStart, w.start)
	b = appendFixed(b, fieldTime, w.end)
	b = appendFixed(b, fieldPointCount, h.Spans)
	b = appendDouble(b, fieldPointSum, p.Seconds)
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

// appendCounts appends the body of a HistogramDataPoint but for its exemplars and attributes: how many
// spans are in each bucket.
func (w *writer) appendCounts(b []byte, p *points.Point, of window) []byte {
	b = appendFixed(b, fieldStart, of.start)
	b = appendFixed(b, fieldTime, of.end)
	b = appendFixed(b, fieldPointCount, p.Durations.Spans)
	b = appendDouble(b, fieldPointSum, p.Seconds*(1e9/w.nanos))
	b = appendHead(b, fieldExplicitCounts, 8*len(p.Classic))
	for _, n := range p.Classic {
		b = protowire.AppendFixed64(b, n)
	}
	b = appendHead(b, fieldExplicitBounds, 8*len(w.bounds))
	for _, bound := range w.bounds {
		b = protowire.AppendFixed64(b, math.Float64bits(bound))
	}
	return b
}

// appendBuckets appends the positive buckets, counts packed. Their length stands before
// them, so it is added up first.
func appendBuckets(b []byte, h *sketch.Buckets) []byte {
	counts := 0
	for _, n := range h.Counts {
		counts += protowire.SizeVarint(n)
	}
	size, offset := fieldSize(counts), protowire.EncodeZigZag(int64(h.Offset))
	if offset != 0 {
		size += 1 + protowire.SizeVarint(offset)
	}
	b = appendHead(b, fieldPointPositive, size)
	if offset != 0 {
		b = appendVarint(b, fieldBucketOffset, offset)
	}
	b = appendHead(b, fieldBucketCounts, counts)
	for _, n := range h.Counts {
		b = protowire.AppendVarint(b, n)
	}
	return b
}

// The lengths of what an Exemplar holds, and of the whole.
const (
	spanIDSize   = 8
	traceIDSize  = 16
	exemplarSize = 1 + 8 + 1 + 8 + 1 + 1 + spanIDSize + 1 + 1 + traceIDSize
)

// appendExemplar appends an exemplar, if there is one, as a field of that number of a point. Its value is
// the truncated duration, which is what its bucket counts. Its time is in the window in which it was
// counted, as the specification asks for, though its span may have ended before.
func (w *writer) appendExemplar(b []byte, field protowire.Number, x exemplars.Exemplar) []byte {
	if x.Span == 0 {
		return b
	}
	ended := min(max(uint64(max(0, x.End)), w.window.start), w.window.end)
	b = appendHead(b, field, exemplarSize)
	b = appendFixed(b, fieldExemplarTime, ended)
	b = appendHead(b, fieldExemplarSpanID, spanIDSize)
	b = binary.BigEndian.AppendUint64(b, x.Span)
	b = appendHead(b, fieldExemplarTraceID, traceIDSize)
	b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, x.TraceHigh), x.TraceLow)
	return appendDouble(b, fieldExemplarDouble, sketch.Truncate(x.Duration)/w.nanos)
}

// appendAttributes appends a list of attributes as fields of another number.
func appendAttributes(b []byte, field protowire.Number, list []byte) []byte {
	for len(list) > 0 {
		_, _, tag := protowire.ConsumeTag(list)
		attribute, size := protowire.ConsumeBytes(list[tag:])
		b = appendMessage(b, field, attribute)
		list = list[tag+size:]
	}
	return b
}
