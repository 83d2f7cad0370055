package otlp

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/flush"
	"github.com/spanstatsd/spanstatsd/internal/sketch"
	"google.golang.org/protobuf/encoding/protowire"
)

// point is what was counted of those spans of a series that have one outcome.
type point struct {
	list      []byte // of attributes
	calls     uint64
	seconds   float64
	durations sketch.Buckets
	exemplar  exemplars.Exemplar // none where its Span is 0
}

// count makes a point of a histogram, which has each span once. The sum has it as often as
// it weighs, so that is scaled to the spans. Where no span weighs more or less than one, that
// changes nothing. It reports whether anything was counted.
func (p *point) count(h *sketch.Histogram, hits, nanoseconds float64) bool {
	p.calls, p.durations = flush.Whole(hits, math.MaxInt64), h.Buckets(sketch.DefaultMaxBuckets)
	if spans := float64(p.durations.Spans); hits > 0 && hits != spans {
		nanoseconds *= spans / hits
	}
	if p.durations.Spans > 0 {
		p.seconds = max(0, nanoseconds) / 1e9
	}
	return p.durations.Spans > 0 || p.calls > 0
}

// appendNumber appends the body of a NumberDataPoint: how many spans there were.
func appendNumber(b []byte, p *point, w window) []byte {
	b = appendFixed(b, fieldStart, w.start)
	b = appendFixed(b, fieldTime, w.end)
	b = appendAttributes(b, fieldNumberAttributes, p.list)
	return appendFixed(b, fieldNumberInt, min(p.calls, math.MaxInt64))
}

// appendHistogram appends the body of an ExponentialHistogramDataPoint. What is 0 is left
// out, as protobuf does.
func appendHistogram(b []byte, p *point, w window) []byte {
	h := &p.durations
	b = append(b, p.list...)
	b = appendFixed(b, fieldStart, w.start)
	b = appendFixed(b, fieldTime, w.end)
	b = appendFixed(b, fieldPointCount, h.Spans)
	b = appendDouble(b, fieldPointSum, p.seconds)
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

// appendExemplar appends an exemplar as a field of a point. Its value is the truncated
// duration, which is what its bucket counts. Its time is in the window in which it was
// counted, as the specification asks for, though its span may have ended before.
func appendExemplar(b []byte, x exemplars.Exemplar, counted window) []byte {
	ended := min(max(uint64(max(0, x.End)), counted.start), counted.end)
	b = appendHead(b, fieldPointExemplars, exemplarSize)
	b = appendFixed(b, fieldExemplarTime, ended)
	b = appendHead(b, fieldExemplarSpanID, spanIDSize)
	b = binary.BigEndian.AppendUint64(b, x.Span)
	b = appendHead(b, fieldExemplarTraceID, traceIDSize)
	b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, x.TraceHigh), x.TraceLow)
	return appendDouble(b, fieldExemplarDouble, sketch.Truncate(x.Duration)/1e9)
}

// window is the time that a cycle's points stand for, nanoseconds since the Unix epoch.
type window struct{ start, end uint64 }

// next is the window behind this one, of a cycle that is encoded. The first begins when its
// cycle did, and each later one where the last ended, over cycles in which nothing was
// counted too: so a gap says that something was lost, and nothing else does. None is empty,
// and none overlaps another, though the wall clock be set back: whoever adds up deltas
// refuses a point that ends no later than the last.
//
// A daemon keeps nothing for the one after it, and needs not: what was counted before a
// daemon ends is sent before it ends, in a window that ends then.
func (w window) next(start, end time.Time) window {
	from := w.end
	if from == 0 {
		from = uint64(max(0, start.UnixNano()))
	}
	return window{from, max(from+1, uint64(max(0, end.UnixNano())))}
}
