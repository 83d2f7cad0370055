package otlp

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/spanstatsd/spanstatsd/internal/wire/protolite"
)

// The fields of attributes.
const (
	fieldKey, fieldValue                       = 1, 2
	fieldText, fieldBool, fieldInt, fieldArray = 1, 2, 3, 5
)

// These functions decode requests in the simplest way, for the tests of this package. test/otlp
// decodes the same requests with the OpenTelemetry library.

type readRequest []readResource

type readResource struct {
	Attributes map[string]any
	Scope      string
	Metrics    map[string]readMetric
}

type readMetric struct {
	Unit        string `json:",omitempty"`
	Temporality uint64
	Monotonic   bool        `json:",omitempty"`
	Points      []readPoint `json:",omitempty"`
}

type readPoint struct {
	Attributes map[string]any
	Start, End uint64
	Calls      *uint64        `json:",omitempty"` // value of a NumberDataPoint
	Count      *uint64        `json:",omitempty"` // count of a histogram, like the following fields
	Sum        float64        `json:",omitempty"`
	Scale      int64          `json:",omitempty"`
	Zeros      uint64         `json:",omitempty"`
	Offset     int64          `json:",omitempty"`
	Counts     []uint64       `json:",omitempty"`
	Bounds     []float64      `json:",omitempty"`
	Exemplars  []readExemplar `json:",omitempty"`
}

type readExemplar struct {
	Time          uint64
	Value         float64
	Trace, SpanID string // hexadecimal
}

func mustRead(t testing.TB, body []byte) (r readRequest) {
	t.Helper()
	for f := range protolite.Fields(body) {
		if f.Number != fieldResourceMetrics {
			t.Fatalf("a request has a field %d", f.Number)
		}
		r = append(r, readOneResource(t, f.Bytes))
	}
	return r
}

func readOneResource(t testing.TB, message []byte) (r readResource) {
	r.Metrics = map[string]readMetric{}
	for f := range protolite.Fields(message) {
		switch f.Number {
		case fieldResource:
			r.Attributes = readAttributes(t, f.Bytes, fieldResourceAttributes)
		case fieldScopeMetrics:
			for f := range protolite.Fields(f.Bytes) {
				switch f.Number {
				case fieldScope:
					for f := range protolite.Fields(f.Bytes) {
						r.Scope += string(f.Bytes) + " "
					}
				case fieldMetrics:
					name, m := readOneMetric(t, f.Bytes)
					r.Metrics[name] = m
				}
			}
		}
	}
	return r
}

func readOneMetric(t testing.TB, message []byte) (name string, m readMetric) {
	for f := range protolite.Fields(message) {
		switch f.Number {
		case fieldMetricName:
			name = string(f.Bytes)
		case fieldMetricUnit:
			m.Unit = string(f.Bytes)
		case fieldMetricSum, fieldMetricExponential, fieldMetricHistogram:
			attributes, of := protowire.Number(fieldNumberAttributes), f.Bytes
			switch f.Number {
			case fieldMetricExponential:
				attributes = fieldPointAttributes
			case fieldMetricHistogram:
				attributes = fieldExplicitAttributes
			}
			for f := range protolite.Fields(of) {
				switch f.Number {
				case fieldPoints:
					m.Points = append(m.Points, readOnePoint(t, f.Bytes, attributes))
				case fieldTemporality:
					m.Temporality = f.Value
				case fieldIsMonotonic:
					m.Monotonic = f.Value == 1
				}
			}
		}
	}
	return name, m
}

func readOnePoint(t testing.TB, message []byte, attributes protowire.Number) (p readPoint) {
	p.Attributes = readAttributes(t, message, attributes)
	if attributes == fieldExplicitAttributes {
		readExplicit(&p, message)
		return p
	}
	isNumber := attributes == fieldNumberAttributes
	for f := range protolite.Fields(message) {
		switch f.Number {
		case fieldStart:
			p.Start = f.Value
		case fieldTime:
			p.End = f.Value
		case fieldPointCount:
			p.Count = &f.Value
		case fieldPointSum:
			p.Sum = math.Float64frombits(f.Value)
		case fieldNumberInt: // fieldPointScale has the same number
			if isNumber {
				p.Calls = &f.Value
			} else {
				p.Scale = protowire.DecodeZigZag(f.Value)
			}
		case fieldPointZeros:
			if !isNumber {
				p.Zeros = f.Value
			}
		case fieldPointPositive:
			p.Offset, p.Counts = readBuckets(f.Bytes)
		case fieldPointExemplars:
			p.Exemplars = append(p.Exemplars, readOneExemplar(f.Bytes))
		}
	}
	return p
}

// readExplicit decodes a HistogramDataPoint, which has its own field numbers.
func readExplicit(p *readPoint, message []byte) {
	for f := range protolite.Fields(message) {
		switch f.Number {
		case fieldStart:
			p.Start = f.Value
		case fieldTime:
			p.End = f.Value
		case fieldPointCount:
			p.Count = &f.Value
		case fieldPointSum:
			p.Sum = math.Float64frombits(f.Value)
		case fieldExplicitCounts:
			for at := 0; at < len(f.Bytes); at += 8 {
				p.Counts = append(p.Counts, binary.LittleEndian.Uint64(f.Bytes[at:]))
			}
		case fieldExplicitBounds:
			for at := 0; at < len(f.Bytes); at += 8 {
				p.Bounds = append(p.Bounds, math.Float64frombits(binary.LittleEndian.Uint64(f.Bytes[at:])))
			}
		case fieldExplicitExemplars:
			p.Exemplars = append(p.Exemplars, readOneExemplar(f.Bytes))
		}
	}
}

func readOneExemplar(message []byte) (x readExemplar) {
	for f := range protolite.Fields(message) {
		switch f.Number {
		case fieldExemplarTime:
			x.Time = f.Value
		case fieldExemplarDouble:
			x.Value = math.Float64frombits(f.Value)
		case fieldExemplarSpanID:
			x.SpanID = hex.EncodeToString(f.Bytes)
		case fieldExemplarTraceID:
			x.Trace = hex.EncodeToString(f.Bytes)
		}
	}
	return x
}

func readBuckets(message []byte) (offset int64, counts []uint64) {
	for f := range protolite.Fields(message) {
		switch f.Number {
		case fieldBucketOffset:
			offset = protowire.DecodeZigZag(f.Value)
		case fieldBucketCounts:
			for packed := f.Bytes; len(packed) > 0; {
				n, size := protowire.ConsumeVarint(packed)
				counts, packed = append(counts, n), packed[size:]
			}
		}
	}
	return offset, counts
}

// readAttributes decodes a list of attributes, and fails the test if a name occurs twice.
func readAttributes(t testing.TB, message []byte, number protowire.Number) map[string]any {
	t.Helper()
	list := map[string]any{}
	for f := range protolite.Fields(message) {
		if f.Number != number || f.Bytes == nil {
			continue
		}
		var key string
		var value any
		for f := range protolite.Fields(f.Bytes) {
			switch f.Number {
			case fieldKey:
				key = string(f.Bytes)
			case fieldValue:
				value = readValue(f.Bytes)
			}
		}
		if _, twice := list[key]; twice || value == nil {
			t.Errorf("attribute %q comes twice, or without a value", key)
		}
		list[key] = value
	}
	return list
}

func readValue(message []byte) (value any) {
	for f := range protolite.Fields(message) {
		switch f.Number {
		case fieldText:
			return string(f.Bytes)
		case fieldBool:
			return f.Value == 1
		case fieldInt:
			return int64(f.Value)
		case fieldArray:
			list := []any{}
			for f := range protolite.Fields(f.Bytes) {
				list = append(list, readValue(f.Bytes))
			}
			return list
		}
	}
	return nil
}

// shown is a request in readable form.
func (r readRequest) shown(t testing.TB) []byte {
	t.Helper()
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(text, '\n')
}

// points returns the points of a metric of one resource, by one attribute.
func (r readResource) points(t testing.TB, metric string, by ...string) map[string]readPoint {
	t.Helper()
	points := map[string]readPoint{}
	for _, p := range r.Metrics[metric].Points {
		name := ""
		for _, attribute := range by {
			name += fmt.Sprint(p.Attributes[attribute], " ")
		}
		if _, twice := points[name]; twice {
			t.Fatalf("two points of %s are called %q", metric, name)
		}
		points[name] = p
	}
	return points
}
