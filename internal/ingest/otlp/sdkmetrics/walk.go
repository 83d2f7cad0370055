package sdkmetrics

import (
	"iter"
	"math"
	"strconv"

	"github.com/spanstatsd/spanstatsd/internal/wire/protolite"
)

// Field numbers and values of OTLP's protobuf messages.
const (
	resourceMetricsField  = 1
	resourceField         = 1
	scopeMetricsField     = 2
	metricField           = 2
	metricNameField       = 1
	metricSumField        = 7
	sumPointField         = 1
	temporalityField      = 2
	pointStartField       = 2
	pointTimeField        = 3
	pointDoubleField      = 4
	pointIntField         = 6
	pointAttributeField   = 7
	attributeKeyField     = 1
	attributeValueField   = 2
	textValueField        = 1
	boolValueField        = 2
	temporalityCumulative = 2 // AGGREGATION_TEMPORALITY_CUMULATIVE
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

// isSDKMetric reports whether SDKs report the metric with this name about their own spans.
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

// submessages iterates over the submessages in the fields of message that have the given number.
func submessages(message []byte, number protolite.Number) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for field := range protolite.Fields(message) {
			if field.Number == number && !yield(field.Bytes) {
				return
			}
		}
	}
}

// lastField returns the last field of message that has the given number, or nil if there is none. In protobuf, the
// last one counts if a field occurs repeatedly.
func lastField(message []byte, number protolite.Number) (last []byte) {
	for field := range submessages(message, number) {
		last = field
	}
	return last
}

// visitPoints calls visit with each data point of the metrics that an SDK reports about its own spans. request is
// an encoded OTLP metrics request. The point is valid only during the call of visit.
func visitPoints(request []byte, visit func(*point)) {
	p := &point{}
	for resource, metric := range metrics(request) {
		p.resource = resource
		p.name = lastField(metric, metricNameField)
		if isSDKMetric(p.name) {
			sum := lastField(metric, metricSumField)
			p.visitSum(sum, visit)
		}
	}
}

// metrics iterates over the encoded metrics in an OTLP request, each with its encoded resource.
func metrics(request []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(resource, metric []byte) bool) {
		for resourceMetrics := range submessages(request, resourceMetricsField) {
			resource := lastField(resourceMetrics, resourceField)
			for scopeMetrics := range submessages(resourceMetrics, scopeMetricsField) {
				for metric := range submessages(scopeMetrics, metricField) {
					if !yield(resource, metric) {
						return
					}
				}
			}
		}
	}
}

// visitSum decodes the data points of an encoded Sum message of OTLP one after the other. It stores each of them in
// p, and calls visit with p if the point is valid.
func (p *point) visitSum(sum []byte, visit func(*point)) {
	p.isCumulative = hasCumulativePoints(sum)
	for encodedPoint := range submessages(sum, sumPointField) {
		isValid := p.decode(encodedPoint)
		if isValid {
			visit(p)
		}
	}
}

// hasCumulativePoints reports whether the data points of a sum metric are cumulative, and not deltas.
func hasCumulativePoints(sum []byte) bool {
	temporality := uint64(0)
	for field := range protolite.Fields(sum) {
		if field.Number == temporalityField {
			temporality = field.Value
		}
	}
	return temporality == temporalityCumulative
}

// decode decodes a NumberDataPoint message of OTLP into p. It returns false if the value is not a plausible number
// of spans, or if there are more than maxAttributes attributes.
func (p *point) decode(encodedPoint []byte) (isValid bool) {
	p.start, p.time, p.value = 0, 0, 0
	p.attributes = p.attributes[:0]
	for field := range protolite.Fields(encodedPoint) {
		switch field.Number {
		case pointStartField:
			p.start = field.Value
		case pointTimeField:
			p.time = field.Value
		case pointDoubleField:
			p.value = math.Float64frombits(field.Value)
		case pointIntField:
			p.value = float64(int64(field.Value))
		case pointAttributeField:
			if len(p.attributes) == maxAttributes {
				return false
			}
			p.attributes = append(p.attributes, field.Bytes)
		}
	}
	return p.value >= 0 && p.value <= maxPointValue
}

// attribute returns the value of the attribute with the given key as a string, for example "true" for a bool. It
// returns "" if p has no such attribute.
func (p *point) attribute(key string) string {
	for _, keyValue := range p.attributes {
		attributeKey := lastField(keyValue, attributeKeyField)
		if string(attributeKey) == key {
			return textOf(lastField(keyValue, attributeValueField))
		}
	}
	return ""
}

// textOf converts the value of an attribute, an encoded AnyValue message of OTLP, to a string. It returns "" for
// values other than strings and bools.
func textOf(value []byte) string {
	for field := range protolite.Fields(value) {
		switch field.Number {
		case textValueField:
			return string(field.Bytes)
		case boolValueField:
			return strconv.FormatBool(field.Value != 0)
		}
	}
	return ""
}
