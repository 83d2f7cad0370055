package sdkmetrics

import (
	"encoding/binary"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
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

// each visits the fields of a message, a text or a message in it by its bytes and a number by its bits. It
// ends at the first that can't be read.
func each(message []byte, visit func(number protowire.Number, text []byte, bits uint64)) {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return
		}
		message = message[n:]
		if n = protowire.ConsumeFieldValue(number, kind, message); n < 0 {
			return
		}
		switch value := message[:n]; kind {
		case protowire.BytesType:
			text, _ := protowire.ConsumeBytes(value)
			visit(number, text, 0)
		case protowire.VarintType:
			bits, _ := protowire.ConsumeVarint(value)
			visit(number, nil, bits)
		case protowire.Fixed64Type:
			visit(number, nil, binary.LittleEndian.Uint64(value))
		}
		message = message[n:]
	}
}

// field is the last of a number in a message, empty where there is none.
func field(message []byte, wanted protowire.Number) (found []byte) {
	each(message, func(number protowire.Number, text []byte, _ uint64) {
		if number == wanted {
			found = text
		}
	})
	return found
}

// walk visits the points of the sums of a request that SDKs have for themselves. A point is good until the
// next.
func walk(request []byte, take func(*point)) {
	p := &point{}
	each(request, func(number protowire.Number, of []byte, _ uint64) {
		if number != requestResource {
			return
		}
		p.resource = field(of, resourceSaid)
		each(of, func(number protowire.Number, scope []byte, _ uint64) {
			if number == resourceScope {
				p.scope(scope, take)
			}
		})
	})
}

// scope visits the metrics of a scope.
func (p *point) scope(scope []byte, take func(*point)) {
	each(scope, func(number protowire.Number, metric []byte, _ uint64) {
		if number != scopeMetric {
			return
		}
		if p.name = field(metric, metricName); isOfSDK(p.name) {
			p.sum(field(metric, metricSum), take)
		}
	})
}

// sum visits the points of a sum.
func (p *point) sum(sum []byte, take func(*point)) {
	p.isCumulative = false
	each(sum, func(number protowire.Number, _ []byte, bits uint64) {
		if number == sumTemporality {
			p.isCumulative = bits == temporalityTotal
		}
	})
	each(sum, func(number protowire.Number, written []byte, _ uint64) {
		if number == sumPoint && p.read(written) {
			take(p)
		}
	})
}

// read reads a point, and says whether it is one that can count.
func (p *point) read(written []byte) bool {
	p.start, p.time, p.value, p.attributes = 0, 0, 0, p.attributes[:0]
	each(written, func(number protowire.Number, text []byte, bits uint64) {
		switch number {
		case pointStart:
			p.start = bits
		case pointTime:
			p.time = bits
		case pointDouble:
			p.value = math.Float64frombits(bits)
		case pointInt:
			p.value = float64(int64(bits))
		case pointAttribute:
			if len(p.attributes) <= mostAttributes { // one more than may be says enough
				p.attributes = append(p.attributes, text)
			}
		}
	})
	return p.value >= 0 && p.value <= mostPointValue && len(p.attributes) <= mostAttributes
}

// text is the value of an attribute, as a text.
func (p *point) text(key string) string {
	for _, written := range p.attributes {
		if string(field(written, attributeKey)) != key {
			continue
		}
		value := ""
		each(field(written, attributeValue), func(number protowire.Number, text []byte, bits uint64) {
			switch number {
			case valueText:
				value = string(text)
			case valueBool:
				value = map[bool]string{true: "true", false: "false"}[bits != 0]
			}
		})
		return value
	}
	return ""
}
