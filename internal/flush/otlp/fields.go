package otlp

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// The fields of OTLP's messages, version 1.
const (
	fieldResourceMetrics = 1 // of ExportMetricsServiceRequest

	fieldResource     = 1 // of ResourceMetrics
	fieldScopeMetrics = 2
	fieldSchemaURL    = 3

	fieldResourceAttributes = 1 // of Resource

	fieldScope   = 1 // of ScopeMetrics
	fieldMetrics = 2

	fieldScopeName    = 1 // of InstrumentationScope
	fieldScopeVersion = 2

	fieldMetricName        = 1 // of Metric
	fieldMetricDescription = 2
	fieldMetricUnit        = 3
	fieldMetricSum         = 7
	fieldMetricExplicit    = 9  // a Histogram, whose buckets have explicit bounds
	fieldMetricHistogram   = 10 // an ExponentialHistogram

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

func appendMessage(b []byte, field protowire.Number, message []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), message)
}

func appendString(b []byte, field protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}

func appendVarint(b []byte, field protowire.Number, n uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), n)
}

func appendFixed(b []byte, field protowire.Number, n uint64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), n)
}

func appendDouble(b []byte, field protowire.Number, f float64) []byte {
	return appendFixed(b, field, math.Float64bits(f))
}

// fieldSize is what a message of so many bytes takes as a field, whose tag is one byte here.
func fieldSize(message int) int { return 1 + protowire.SizeBytes(message) }

// appendHead begins a message of so many bytes.
func appendHead(b []byte, field protowire.Number, size int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.BytesType), uint64(size))
}
