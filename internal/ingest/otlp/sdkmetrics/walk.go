package sdkmetrics

import (
	"iter"
	"math"
	"strconv"

	"github.com/spanstatsd/spanstatsd/internal/wire/protolite"
)

// The fields of OTLP's messages that are read.
const (
	requestResource  = 1
	resourceSaid     = 1
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
	temporalityTotal = 2 // since a start, and not since the last report
)

// The sums that SDKs have for themselves. The last two are those that Java has where it is told nothing of
// the conventions.
const (
	spanStarted   = "otel.sdk.span.started"
	spanProcessed = "otel.sdk.processor.span.processed"
	spanExported  = "otel.sdk.exporter.span.exported"
	javaProcessed = "processedSpans"
	javaExported  = "otlp.exporter.exported"
)

// isOfSDK says whether a sum of that name is one of them.
func isOfSDK(name []byte) bool {
	switch string(name) {
	case spanStarted, spanProcessed, spanExported, javaProcessed, javaExported:
		return true
	}
	return false
}

// mostPointValue is more spans than anybody has begun, and a whole number of a double.
const mostPointValue = 1 << 53

// mostAttributes is how many a point may have; those of SDKs about themselves have fewer than ten.
const mostAttributes = 16

// point is one of a sum that an SDK has for itself.
type point struct {
	resource, name []byte // as they were written
	isCumulative   bool
	start, time    uint64
	value          float64
	attributes     [][]byte // as they were written
}

// all are the messages of a number in a message.
func all(message []byte, number protolite.Number) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for f := range protolite.Fields(message) {
			if f.Number == number && !yield(f.Bytes) {
				return
			}
		}
	}
}

// field is the last of a number in a message, empty where there is none.
func field(message []byte, number protolite.Number) (found []byte) {
	for one := range all(message, number) {
		found = one
	}
	return found
}

// walk visits the points of the sums of a request that SDKs have for themselves. A point is good until the
// next.
func walk(request []byte, take func(*point)) {
	p := &point{}
	for of := range all(request, requestResource) {
		p.resource = field(of, resourceSaid)
		for scope := range all(of, resourceScope) {
			for metric := range all(scope, scopeMetric) {
				if p.name = field(metric, metricName); isOfSDK(p.name) {
					p.sum(field(metric, metricSum), take)
				}
			}
		}
	}
}

// sum visits the points of a sum.
func (p *point) sum(sum []byte, take func(*point)) {
	p.isCumulative = false
	for f := range protolite.Fields(sum) {
		if f.Number == sumTemporality {
			p.isCumulative = f.Value == temporalityTotal
		}
	}
	for written := range all(sum, sumPoint) {
		if p.read(written) {
			take(p)
		}
	}
}

// read reads a point, and says whether it is one that can count.
func (p *point) read(written []byte) bool {
	p.start, p.time, p.value, p.attributes = 0, 0, 0, p.attributes[:0]
	for f := range protolite.Fields(written) {
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
			if len(p.attributes) <= mostAttributes { // one more than may be says enough
				p.attributes = append(p.attributes, f.Bytes)
			}
		}
	}
	return p.value >= 0 && p.value <= mostPointValue && len(p.attributes) <= mostAttributes
}

// text is the value of an attribute, as a text.
func (p *point) text(key string) string {
	for _, written := range p.attributes {
		if string(field(written, attributeKey)) != key {
			continue
		}
		for f := range protolite.Fields(field(written, attributeValue)) {
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
