package sdkmetrics

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// reportedPoint is a metrics request with one data point.
type reportedPoint struct {
	process, name string
	attributes    map[string]any // values are strings or bools
	isDelta       bool
	start         int64
	value         any    // int64 or float64
	time          uint64 // nanoseconds since the Unix epoch
}

func nested(number protowire.Number, message []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), message)
}

func attribute(key string, value any) []byte {
	var encoded []byte
	switch v := value.(type) {
	case string:
		encoded = nested(textValueField, []byte(v))
	case bool:
		encoded = protowire.AppendVarint(protowire.AppendTag(nil, boolValueField, protowire.VarintType),
			protowire.EncodeBool(v))
	}
	return append(nested(attributeKeyField, []byte(key)), nested(attributeValueField, encoded)...)
}

// encode returns the request in protobuf.
func (s reportedPoint) encode() []byte {
	fixed := func(number protowire.Number, bits uint64) []byte {
		return protowire.AppendFixed64(protowire.AppendTag(nil, number, protowire.Fixed64Type), bits)
	}
	point := append(fixed(pointStartField, uint64(s.start)), fixed(pointTimeField, s.time)...)
	for key, value := range s.attributes {
		point = append(point, nested(pointAttributeField, attribute(key, value))...)
	}
	switch v := s.value.(type) {
	case int64:
		point = append(point, fixed(pointIntField, uint64(v))...)
	case float64:
		point = append(point, fixed(pointDoubleField, math.Float64bits(v))...)
	}
	sum := nested(sumPointField, point)
	temporality := uint64(temporalityCumulative)
	if s.isDelta {
		temporality = 1
	}
	sum = protowire.AppendVarint(protowire.AppendTag(sum, temporalityField, protowire.VarintType), temporality)
	metric := append(nested(metricSumField, sum), nested(metricNameField, []byte(s.name))...)
	resource := nested(1, attribute("service.instance.id", s.process))
	return nested(resourceMetricsField, append(nested(resourceField, resource),
		nested(scopeMetricsField, nested(metricField, metric))...))
}

func listen(since int64) *Accumulator {
	return newAccumulator(func() time.Time { return time.Unix(0, since) })
}

func (l *Accumulator) expect(t *testing.T, want Sums) {
	t.Helper()
	if got, found := l.Sums(); got != want || !found {
		t.Errorf("sums %+v (found %t), want %+v", got, found, want)
	}
}

// TestSums_MetricNames covers the metric names of the semantic conventions and of the Java SDK.
func TestSums_MetricNames(t *testing.T) {
	type tags = map[string]any
	otlp, file := "otlp_http_span_exporter", "stdout"
	for _, c := range []struct {
		name string
		tags tags
		want Sums
	}{
		{spanStarted, tags{"otel.span.sampling_result": "RECORD_AND_SAMPLE"}, Sums{Started: 7, Sampled: 7}},
		{spanStarted, tags{"otel.span.sampling_result": "DROP"}, Sums{Started: 7}},
		{spanProcessed, tags{"error.type": "queue_full"}, Sums{Dropped: 7}},
		{spanProcessed, tags{"otel.component.type": "batching_span_processor"}, Sums{}},
		{javaProcessed, tags{"dropped": true}, Sums{Dropped: 7}},
		{javaProcessed, tags{"dropped": false}, Sums{}},
		{spanExported, tags{"otel.component.type": otlp}, Sums{Exported: 7}},
		{spanExported, tags{"otel.component.type": otlp, "error.type": "503"}, Sums{Failed: 7}},
		{spanExported, tags{"otel.component.type": file}, Sums{}},
		{javaExported, tags{"type": "span", "success": true}, Sums{Exported: 7}},
		{javaExported, tags{"type": "span", "success": false}, Sums{Failed: 7}},
		{javaExported, tags{"type": "metric", "success": true}, Sums{}},
	} {
		for _, value := range []any{int64(7), 7.0} {
			l := listen(10)
			l.Add(reportedPoint{"a", c.name, c.tags, false, 10, value, 0}.encode())
			l.expect(t, c.want)
		}
	}
	l := listen(10)
	l.Add(reportedPoint{"a", "http.server.requests", nil, false, 10, int64(7), 0}.encode())
	if _, found := l.Sums(); found {
		t.Error("a sum of an application counts as one of its SDK")
	}
}

// TestSums_OnlySinceStart covers processes that started before and after the listener, with cumulative and
// with delta sums, and restarts of these processes.
func TestSums_OnlySinceStart(t *testing.T) {
	read := func(l *Accumulator, isDelta bool, start int64, values ...int64) {
		for _, v := range values {
			l.Add(reportedPoint{"a", spanStarted, nil, isDelta, start, v, 0}.encode())
		}
	}
	for _, c := range []struct {
		name string
		do   func(*Accumulator)
		want uint64
	}{
		{"it began later", func(l *Accumulator) { read(l, false, 11, 5, 5, 9) }, 9},
		{"it began before", func(l *Accumulator) { read(l, false, 9, 100, 100, 104) }, 4},
		{"since the last report", func(l *Accumulator) { read(l, true, 9, 5, 0, 9) }, 14},
		{"it begins again", func(l *Accumulator) { read(l, false, 9, 100, 104); read(l, false, 12, 3, 6) }, 10},
		{"it begins again, with more", func(l *Accumulator) {
			read(l, false, 9, 100, 104)
			read(l, false, 12, 200)
		}, 204},
		{"a late report", func(l *Accumulator) { read(l, false, 9, 100, 104, 102, 106) }, 6},
		{"less than nothing, and too much", func(l *Accumulator) {
			read(l, true, 9, -1, 1<<60)
			l.Add(reportedPoint{"a", spanStarted, nil, true, 9, math.NaN(), 0}.encode())
		}, 0},
	} {
		l := listen(10)
		if c.do(l); c.want > 0 {
			l.expect(t, Sums{Started: c.want})
		} else if sums, _ := l.Sums(); sums != (Sums{}) {
			t.Errorf("%s: %+v", c.name, sums)
		}
	}
}

// TestAccumulator_ProcessesThatShareAResource checks workers of one server, such as gunicorn, that report in turns.
func TestAccumulator_ProcessesThatShareAResource(t *testing.T) {
	l := listen(10)
	for value := int64(10); value <= 100; value += 10 {
		for _, start := range []int64{11, 12} {
			l.Add(reportedPoint{"workers", spanStarted, nil, false, start, value, 0}.encode())
		}
	}
	l.expect(t, Sums{Started: 200})

	l = listen(10) // forked after the first span: even the start times are equal
	for value := int64(10); value <= 100; value += 10 {
		for _, ahead := range []int64{1, 0} {
			l.Add(reportedPoint{"workers", spanStarted, nil, false, 11, value + ahead, 0}.encode())
		}
	}
	l.expect(t, Sums{Started: 101})
}

// TestReport_RetryCountsOnce simulates an exporter that retries after its destination was unavailable.
func TestReport_RetryCountsOnce(t *testing.T) {
	for _, isDelta := range []bool{true, false} {
		l := listen(10)
		for _, time := range []uint64{20, 20, 30, 30, 30} {
			l.Add(reportedPoint{"a", spanStarted, nil, isDelta, 11, int64(5), time}.encode())
		}
		l.expect(t, Sums{Started: map[bool]uint64{true: 10, false: 5}[isDelta]})
	}
}

// TestSeries_DifferByProcessAndAttributes compares the sums of series that differ in process or attributes with a model.
func TestSeries_DifferByProcessAndAttributes(t *testing.T) {
	dice := rand.New(rand.NewPCG(1, 2))
	l, want := listen(10), Sums{}
	values := map[string]int64{}
	for range 2000 {
		process, result := fmt.Sprint(dice.IntN(20)), []string{"DROP", "RECORD_AND_SAMPLE"}[dice.IntN(2)]
		increase := dice.Int64N(100)
		values[process+result] += increase
		l.Add(reportedPoint{
			process, spanStarted,
			map[string]any{"otel.span.sampling_result": result},
			false, 11,
			values[process+result], 0,
		}.encode())
		if want.Started += uint64(increase); result != "DROP" {
			want.Sampled += uint64(increase)
		}
	}
	l.expect(t, want)
}

// TestSeries_AreBounded checks that a sender with many invented processes resets the series, but that the sums include
// only reported spans.
func TestSeries_AreBounded(t *testing.T) {
	now := int64(10)
	l := newAccumulator(func() time.Time { return time.Unix(0, now) })
	l.Add(reportedPoint{"honest", spanStarted, nil, false, 11, int64(5), 0}.encode())
	for i := range 3 * MaxSeries {
		now = int64(20 + i)
		l.Add(reportedPoint{fmt.Sprint(i), spanProcessed, nil, false, 11, int64(1), 0}.encode())
		if len(l.lastReports) > MaxSeries {
			t.Fatalf("%d series are remembered", len(l.lastReports))
		}
	}
	for _, v := range []int64{6, 9} {
		l.Add(reportedPoint{"honest", spanStarted, nil, false, 11, v, 0}.encode())
	}
	l.expect(t, Sums{Started: 5 + 3})
}

// TestPoint_TooManyAttributes also checks that the memory of a point does not grow with its attributes.
func TestPoint_TooManyAttributes(t *testing.T) {
	l, one := listen(10), nested(pointAttributeField, nil)
	for _, attributes := range []int{maxAttributes, maxAttributes + 1, 1 << 16} {
		encoded := protowire.AppendFixed64(protowire.AppendTag(nil, pointIntField, protowire.Fixed64Type), 5)
		encoded = append(encoded, bytes.Repeat(one, attributes)...)
		sum := nested(sumPointField, encoded)
		metric := append(nested(metricNameField, []byte(spanStarted)), nested(metricSumField, sum)...)
		l.Add(nested(resourceMetricsField, nested(scopeMetricsField, nested(metricField, metric))))
		p := &point{}
		if p.decode(encoded) != (attributes <= maxAttributes) || cap(p.attributes) > 4*maxAttributes {
			t.Errorf("of %d attributes there is room for %d", attributes, cap(p.attributes))
		}
	}
	l.expect(t, Sums{Started: 5})
}

// FuzzAdd checks that no request causes a panic, or sums without a report.
func FuzzAdd(f *testing.F) {
	f.Add(reportedPoint{"a", spanStarted, map[string]any{"error.type": "DROP"}, false, 11, int64(5), 0}.encode())
	f.Add(reportedPoint{
		"a", javaExported,
		map[string]any{"type": "span", "success": true},
		true, 11, 5.0,
		0,
	}.encode())
	f.Fuzz(func(t *testing.T, message []byte) {
		l := listen(10)
		l.Add(message)
		l.Add(message)
		if sums, found := l.Sums(); !found && sums != (Sums{}) {
			t.Errorf("sums without a report: %+v", sums)
		}
	})
}
