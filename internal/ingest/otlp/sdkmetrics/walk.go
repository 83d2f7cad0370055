package sdkmetrics

import (
	"iter"
	"math"
	"strconv"

	"github.com/spanstatsd/spanstatsd/internal/wire/protolite"
)

// Field numbers and values of OTLP's protobuf messages.
const (
	requestResource  = 1
	resourceInfo     = 1
	resourceScope    = 2
	scopeMetric      = 2
	metricName       = 1
	metricSum        = 7
	sumPoint         = 1
	sumTemporality   = 2
	pointStart       = 2
	pointTime        = 3
	pointDouble      = 4
	pointInt         = 6
	pointAttribute   = 7
	attributeKey     = 1
	attributeValue   = 2
	valueText        = 1
	valueBool        = 2
	temporalityTotal = 2 // AGGREGATION_TEMPORALITY_CUMULATIVE
)

// Names of the sum metrics that SDKs report about their own spans. The last two are those of a Java SDK that is not
// configured to follow the semantic conventions.
const (
	spanStarted   = "otel.sdk.span.started"
	spanProcessed = "otel.sdk.processor.span.processed"
	spanExported  = "otel.sdk.exporter.span.exported"
	javaProcessed = "processedSpans"
	javaExported  = "otlp.exporter.exported"
)

// isSDKMetric reports whether name is the name of a metric that SDKs report about their own spans.
func isSDKMetric(name []byte) bool {
	switch string(name) {
	case spanStarted, spanProcessed, spanExported, javaProcessed, javaExported:
		return true
	}
	return false
}

// maxPointValue is the maximum value of a point: every smaller whole number is exact as a float64, and no SDK has
// started as many spans.
const maxPointValue = 1 << 53

// maxAttributes is the maximum number of attributes of a point; SDK metrics have fewer than ten.
const maxAttributes = 16

// point is a data point of an SDK metric.
type point struct {
	resource, name []byte // encoded resource message, and metric name
	isCumulative   bool
	start, time    uint64 // nanoseconds since the Unix epoch
	value          float64
	attributes     [][]byte // encoded KeyValue messages
}

// submessages returns the fields with a number in a message.
func submessages(message []byte, number protolite.Number) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for f := range protolite.Fields(message) {
			if f.Number == number && !yield(f.Bytes) {
				return
			}
		}
	}
}

// lastField returns the last field with a number in a message, or nil if the message has none.
func lastField(message []byte, number protolite.Number) (last []byte) {
	for field := range submessages(message, number) {
		last = field
	}
	return last
}

// visitPoints calls visit with each data point of the SDK metrics in a metrics request. It reuses the point after
// visit has returned.
func visitPoints(request []byte, visit func(*point)) {
	p := &point{}
	for resourceMetrics := range submessages(request, requestResource) {
		p.resource = lastField(resourceMetrics, resourceInfo)
		for scopeMetrics := range submessages(resourceMetrics, resourceScope) {
			for metric := range submessages(scopeMetrics, scopeMetric) {
				if p.name = lastField(metric, metricName); isSDKMetric(p.name) {
					p.visitSum(lastField(metric, metricSum), visit)
				}
			}
		}
	}
}

// visitSum calls visit with each valid data point of an encoded Sum message. It reads each of them into p.
func (p *point) visitSum(sum []byte, visit func(*point)) {
	p.isCumulative = false
	for f := range protolite.Fields(sum) {
		if f.Number == sumTemporality {
			p.isCumulative = f.Value == temporalityTotal
		}
	}
	for encoded := range submessages(sum, sumPoint) {
		if p.read(encoded) {
			visit(p)
		}
	}
}

// read decodes a NumberDataPoint message into p. It reports whether the value and the number of attributes are within
// their limits.
func (p *point) read(encoded []byte) (isValid bool) {
	p.start, p.time, p.value, p.attributes = 0, 0, 0, p.attributes[:0]
	for f := range protolite.Fields(encoded) {
		switch f.Number {
		case pointStart:
			p.start = f.Value
		case pointTime:
			p.time = f.Value
		case pointDouble:
			p.value = math.Float64frombits(f.Value)
		case pointInt:
			p.value = float64(int64(f.Value))
		case pointAttribute:
			if len(p.attributes) <= maxAttributes { // one more than the limit makes the point invalid
				p.attributes = append(p.attributes, f.Bytes)
			}
		}
	}
	return p.value >= 0 && p.value <= maxPointValue && len(p.attributes) <= maxAttributes
}

// attribute returns the value of a string or bool attribute as a string, or "" for a missing attribute.
func (p *point) attribute(key string) string {
	for _, encoded := range p.attributes {
		if string(lastField(encoded, attributeKey)) != key {
			continue
		}
		for f := range protolite.Fields(lastField(encoded, attributeValue)) {
			switch f.Number {
			case valueText:
				return string(f.Bytes)
			case valueBool:
				return strconv.FormatBool(f.Value != 0)
			}
		}
	}
	return ""
}
