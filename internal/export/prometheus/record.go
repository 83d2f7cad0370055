package prometheus

import (
	"fmt"
	"math"
	"slices"
	"time"
	"unsafe"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"github.com/spanstatsd/spanstatsd/internal/export/points"
	"github.com/spanstatsd/spanstatsd/internal/export/totals"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// record is the state of a series at the end of a cycle, as scrapes read it. It is immutable.
type record struct {
	labels     string // encoded
	cycle      uint64 // last cycle in which it was counted
	start, end int64  // start and end of the counted period
	calls      float64
	errors     float64 // part of calls with an error
	newCalls   float64 // part of calls that the last counted cycle added
	newErrors  float64 // part of errors that the last counted cycle added
	spans      uint64  // number of spans with a duration
	seconds    float64
	scale      int32
	offset     int32 // index of the first native bucket
	length     uint32
	zeros      uint64
	deltas     []int64            // difference of each native bucket to the previous one
	cumulative []uint64           // by classic bucket
	exemplar   exemplars.Exemplar // missing if its Span is 0
}

// next returns the record that follows r, for the totals s at the end of the given cycle. e is the exemplar
// of the cycle; if it is missing, the new record keeps the exemplar of r, because scrapes can be less
// frequent than cycles. Prometheus numbers a native bucket by its upper bound, and OTLP by its lower
// one, so the offset is one more.
func (r *record) next(s *totals.Series, cycle uint64, end int64, e exemplars.Exemplar) *record {
	b := &s.Buckets
	next := &record{
		labels: r.labels, cycle: cycle, start: s.Start, end: end, calls: float64(s.Calls), errors: float64(s.Errors), spans: b.Spans,
		seconds: s.Seconds, scale: b.Scale, offset: b.Offset + 1, length: uint32(len(b.Counts)),
		zeros: b.Zeros, deltas: make([]int64, len(b.Counts)), cumulative: make([]uint64, len(s.Classic)),
		exemplar: e,
	}
	next.newCalls, next.newErrors = next.calls-r.calls, next.errors-r.errors
	if e.Span == 0 {
		next.exemplar = r.exemplar
	}
	for i, before := 0, uint64(0); i < len(b.Counts); i++ {
		next.deltas[i] = int64(b.Counts[i] - before)
		before = b.Counts[i]
	}
	cumulative := uint64(0)
	for i, spans := range s.Classic {
		cumulative += spans
		next.cumulative[i] = cumulative
	}
	return next
}

// The memory of a record without its lists, and of an element of a list.
const (
	recordBytes  = int(unsafe.Sizeof(record{})) + 32
	elementBytes = 8
)

// message is the protobuf message of one series, reused for the next. It points into the record.
type message struct {
	metric    dto.Metric
	counter   dto.Counter
	histogram dto.Histogram
	created   timestamppb.Timestamp
	texts     []string // names and values of labels
	pairs     []*dto.LabelPair
	bounds    []float64
	buckets   []*dto.Bucket // classic buckets
	isNative  bool
	span      dto.BucketSpan
}

// newMessage returns a message, with classic buckets if there are bounds.
func newMessage(bounds []float64, isNative bool) *message {
	m := &message{isNative: isNative}
	if len(bounds) > 0 {
		m.bounds = append(slices.Clone(bounds), math.Inf(1))
	}
	for i := range m.bounds {
		m.buckets = append(m.buckets, &dto.Bucket{UpperBound: &m.bounds[i]})
	}
	m.counter.CreatedTimestamp, m.histogram.CreatedTimestamp = &m.created, &m.created
	return m
}

// calls sets the message to the counter of a series.
func (m *message) calls(r *record) *dto.Metric {
	m.begin(r)
	m.counter.Value = &r.calls
	m.metric.Counter = &m.counter
	return &m.metric
}

// errors sets the message to the counter of a series' errors.
func (m *message) errors(r *record) *dto.Metric {
	m.begin(r)
	m.counter.Value = &r.errors
	m.metric.Counter = &m.counter
	return &m.metric
}

// durations sets the message to the histogram of a series.
func (m *message) durations(r *record) *dto.Metric {
	m.begin(r)
	h := &m.histogram
	h.SampleCount, h.SampleSum, h.Bucket, h.Exemplars = &r.spans, &r.seconds, m.buckets, nil
	for i := range m.buckets {
		m.buckets[i].CumulativeCount, m.buckets[i].Exemplar = &r.cumulative[i], nil
	}
	if m.isNative {
		m.addNative(r)
	}
	if r.exemplar.Span != 0 {
		m.addExemplar(&r.exemplar)
	}
	m.metric.Histogram = h
	return &m.metric
}

// begin sets the common fields of all metrics of a series.
func (m *message) begin(r *record) {
	m.metric.Counter, m.metric.Histogram = nil, nil
	m.created.Seconds, m.created.Nanos = r.start/1e9, int32(r.start%1e9)
	m.texts = m.texts[:0]
	for name, value := range points.Labels(r.labels) {
		m.texts = append(m.texts, name, value)
	}
	for len(m.pairs) < len(m.texts)/2 {
		m.pairs = append(m.pairs, &dto.LabelPair{})
	}
	m.metric.Label = m.pairs[:len(m.texts)/2]
	for i, pair := range m.metric.Label {
		pair.Name, pair.Value = &m.texts[2*i], &m.texts[2*i+1]
	}
}

// addNative sets the native buckets, which are contiguous.
func (m *message) addNative(r *record) {
	h := &m.histogram
	h.Schema, h.ZeroCount = &r.scale, &r.zeros
	h.ZeroThreshold = proto.Float64(prometheus.DefNativeHistogramZeroThreshold)
	if h.PositiveSpan, h.PositiveDelta = nil, r.deltas; r.length > 0 {
		m.span.Offset, m.span.Length = &r.offset, &r.length
		h.PositiveSpan = []*dto.BucketSpan{&m.span}
	}
}

// addExemplar sets the exemplar, also on the classic bucket that contains it. Its value is the
// truncated duration, so that it is within the bounds of the bucket that counts the span.
func (m *message) addExemplar(x *exemplars.Exemplar) {
	trace, span := fmt.Sprintf("%016x%016x", x.TraceHigh, x.TraceLow), fmt.Sprintf("%016x", x.Span)
	e := &dto.Exemplar{
		Label: []*dto.LabelPair{
			{Name: proto.String("trace_id"), Value: &trace}, {Name: proto.String("span_id"), Value: &span},
		},
		Value:     proto.Float64(sketch.Truncate(x.Duration) / 1e9),
		Timestamp: timestamppb.New(time.Unix(0, x.End)),
	}
	if len(m.buckets) > 0 {
		at, _ := slices.BinarySearch(m.bounds, *e.Value)
		m.buckets[at].Exemplar = e
	}
	if m.isNative {
		m.histogram.Exemplars = []*dto.Exemplar{e}
	}
}
