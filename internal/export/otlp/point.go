package otlp

import (
	"encoding/binary"
	"math"

	"github.com/spanstatsd/spanstatsd/internal/aggregate/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"github.com/spanstatsd/spanstatsd/internal/export/points"
	"github.com/spanstatsd/spanstatsd/internal/wire/protolite"
	"google.golang.org/protobuf/encoding/protowire"
)

// The fields of OTLP's messages, version 1.
const (
	fieldResourceMetrics = 1 // of ExportMetricsServiceRequest

	fieldResource     = 1 // of ResourceMetrics
	fieldScopeMetrics = 2

	fieldResourceAttributes = 1 // of Resource

	fieldScope   = 1 // of ScopeMetrics
	fieldMetrics = 2

	fieldScopeName    = 1 // of InstrumentationScope
	fieldScopeVersion = 2

	fieldMetricName        = 1 // of Metric
	fieldMetricDescription = 2
	fieldMetricUnit        = 3
	fieldMetricSum         = 7
	fieldMetricHistogram   = 9  // with explicit bounds of buckets
	fieldMetricExponential = 10 // an ExponentialHistogram

	fieldPoints      = 1 // of Sum and of both kinds of histograms
	fieldTemporality = 2
	fieldIsMonotonic = 3 // of Sum

	fieldStart = 2 // of all kinds of points, as is the next
	fieldTime  = 3

	fieldNumberInt        = 6 // of NumberDataPoint
	fieldNumberAttributes = 7

	fieldPointAttributes = 1 // of ExponentialHistogramDataPoint
	fieldPointCount      = 4 // of HistogramDataPoint as well, as is the next
	fieldPointSum        = 5
	fieldPointScale      = 6
	fieldPointZeros      = 7
	fieldPointPositive   = 8
	fieldPointExemplars  = 11

	fieldExplicitCounts     = 6 // of HistogramDataPoint
	fieldExplicitBounds     = 7
	fieldExplicitExemplars  = 8
	fieldExplicitAttributes = 9

	fieldBucketOffset = 1 // of its Buckets
	fieldBucketCounts = 2

	fieldExemplarTime    = 2 // of Exemplar
	fieldExemplarDouble  = 3
	fieldExemplarSpanID  = 4
	fieldExemplarTraceID = 5
)

// delta and cumulative are values of AggregationTemporality.
const (
	delta      = 1
	cumulative = 2
)

// appendCalls appends the body of a NumberDataPoint with the number of calls.
func appendCalls(b []byte, p *points.Point, period window) []byte {
	b = protolite.AppendFixed64(b, fieldStart, period.start)
	b = protolite.AppendFixed64(b, fieldTime, period.end)
	b = appendAttributes(b, fieldNumberAttributes, p.Attributes)
	return protolite.AppendFixed64(b, fieldNumberInt, min(p.Calls, math.MaxInt64))
}

// appendExponential appends p to b as the body of an OTLP ExponentialHistogramDataPoint that covers the given
// period. Like protobuf, it omits the scale and the count of zeros if they are 0.
func (m *metric) appendExponential(b []byte, p *points.Point, period window) []byte {
	h := &p.Durations
	b = append(b, p.Attributes...)
	b = protolite.AppendFixed64(b, fieldStart, period.start)
	b = protolite.AppendFixed64(b, fieldTime, period.end)
	b = protolite.AppendFixed64(b, fieldPointCount, h.Spans)
	b = protolite.AppendDouble(b, fieldPointSum, p.Seconds)
	if h.Scale != 0 {
		b = protolite.AppendVarint(b, fieldPointScale, protowire.EncodeZigZag(int64(h.Scale)))
	}
	if h.Zeros != 0 {
		b = protolite.AppendFixed64(b, fieldPointZeros, h.Zeros)
	}
	if len(h.Counts) > 0 {
		b = appendBuckets(b, h)
	}
	return m.appendExemplar(b, fieldPointExemplars, p.Exemplar)
}

// appendExplicit appends p to b as the body of an OTLP HistogramDataPoint that covers the given period. Its buckets
// have the bounds m.bounds, and the counts p.Classic.
func (m *metric) appendExplicit(b []byte, p *points.Point, period window) []byte {
	b = protolite.AppendFixed64(b, fieldStart, period.start)
	b = protolite.AppendFixed64(b, fieldTime, period.end)
	b = protolite.AppendFixed64(b, fieldPointCount, p.Durations.Spans)
	b = protolite.AppendDouble(b, fieldPointSum, p.Seconds*m.unitsPerSecond)
	b = protolite.AppendHead(b, fieldExplicitCounts, fixed64Size*len(p.Classic))
	for _, spans := range p.Classic {
		b = protowire.AppendFixed64(b, spans)
	}
	b = protolite.AppendHead(b, fieldExplicitBounds, fixed64Size*len(m.bounds))
	for _, bound := range m.bounds {
		b = protowire.AppendFixed64(b, math.Float64bits(bound))
	}
	b = m.appendExemplar(b, fieldExplicitExemplars, p.Exemplar)
	return appendAttributes(b, fieldExplicitAttributes, p.Attributes)
}

// appendBuckets appends the positive buckets of an exponential histogram as a protobuf message: their offset, unless
// it is 0, and their counts as a list of varints.
func appendBuckets(b []byte, h *sketch.Buckets) []byte {
	offset := protowire.EncodeZigZag(int64(h.Offset))
	countsSize := varintsSize(h.Counts)
	messageSize := protolite.FieldSize(countsSize)
	if offset != 0 {
		messageSize += tagSize + protowire.SizeVarint(offset)
	}
	b = protolite.AppendHead(b, fieldPointPositive, messageSize)
	if offset != 0 {
		b = protolite.AppendVarint(b, fieldBucketOffset, offset)
	}
	b = protolite.AppendHead(b, fieldBucketCounts, countsSize)
	for _, spans := range h.Counts {
		b = protowire.AppendVarint(b, spans)
	}
	return b
}

// varintsSize returns the length of a list of numbers, each encoded as a varint.
func varintsSize(numbers []uint64) (size int) {
	for _, n := range numbers {
		size += protowire.SizeVarint(n)
	}
	return size
}

// The lengths of parts of messages, and of an Exemplar: its time, duration, span ID and trace ID.
const (
	tagSize      = 1 // of field numbers up to 15
	fixed64Size  = 8
	spanIDSize   = 8
	traceIDSize  = 16
	exemplarSize = 2*(tagSize+fixed64Size) + (tagSize + 1 + spanIDSize) + (tagSize + 1 + traceIDSize)
)

// appendExemplar appends the exemplar x to a data point. It does nothing if x.Span is 0, which means that there is
// no exemplar. The value is the duration as the histogram counts it, truncated to fewer digits, so that it is within
// the bounds of the bucket that counts the span.
func (m *metric) appendExemplar(b []byte, field protolite.Number, x exemplars.Exemplar) []byte {
	if x.Span == 0 { // there is no exemplar
		return b
	}
	const nanosPerSecond = 1e9
	nanosPerUnit := nanosPerSecond / m.unitsPerSecond // the unit of the metric is a second or a millisecond
	value := sketch.Truncate(x.Duration) / nanosPerUnit
	b = protolite.AppendHead(b, field, exemplarSize)
	b = protolite.AppendFixed64(b, fieldExemplarTime, uint64(x.End))
	b = protolite.AppendHead(b, fieldExemplarSpanID, spanIDSize)
	b = binary.BigEndian.AppendUint64(b, x.Span)
	b = protolite.AppendHead(b, fieldExemplarTraceID, traceIDSize)
	b = binary.BigEndian.AppendUint64(b, x.TraceHigh)
	b = binary.BigEndian.AppendUint64(b, x.TraceLow)
	return protolite.AppendDouble(b, fieldExemplarDouble, value)
}

// appendAttributes appends the attributes in list, a sequence of protobuf fields, to b as fields with the number
// field. It ignores the numbers that the fields have in list.
func appendAttributes(b []byte, field protolite.Number, list []byte) []byte {
	for f := range protolite.Fields(list) {
		b = protolite.AppendBytes(b, field, f.Bytes)
	}
	return b
}
