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
	metric     int    // index in points.Reader.Metrics
	labels     string // encoded
	cycle      uint64 // last cycle in which it was counted
	start, end int64  // start and end of the counted period
	calls      float64
	errors     float64 // part of calls with an error
	newCalls   float64 // part of calls that the cycle added
	newErrors  float64 // part of errors that the cycle added
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

// newRecord returns a record of the running totals of the series s at the end of an export interval. previous is the
// last record of the series, cycle the number of the interval, and end its end in nanoseconds since the Unix epoch.
func newRecord(previous *record, s *totals.Series, cycle uint64, end int64, e exemplars.Exemplar) *record {
	buckets := &s.Buckets
	calls, errors := float64(s.Calls), float64(s.Errors)
	return &record{
		metric:     previous.metric,
		labels:     previous.labels,
		cycle:      cycle,
		start:      s.Start,
		end:        end,
		calls:      calls,
		errors:     errors,
		newCalls:   calls - previous.calls,
		newErrors:  errors - previous.errors,
		spans:      buckets.Spans,
		seconds:    s.Seconds,
		scale:      buckets.Scale,
		offset:     buckets.Offset + 1, // OTLP numbers a bucket by its lower bound, Prometheus by its upper bound
		length:     uint32(len(buckets.Counts)),
		zeros:      buckets.Zeros,
		deltas:     deltas(buckets.Counts),
		cumulative: cumulativeCounts(s.Classic),
		exemplar:   e,
	}
}

// deltas returns the difference of each count to the previous one, for example 5, -2 for the counts 5, 3.
func deltas(counts []uint64) []int64 {
	differences := make([]int64, len(counts))
	previous := uint64(0)
	for i, count := range counts {
		differences[i] = int64(count - previous)
		previous = count
	}
	return differences
}

// cumulativeCounts returns the sum of each count and all counts before it, for example 5, 8 for the counts 5, 3.
func cumulativeCounts(counts []uint64) []uint64 {
	sums := make([]uint64, len(counts))
	sum := uint64(0)
	for i, count := range counts {
		sum += count
		sums[i] = sum
	}
	return sums
}

// The memory of a record without its buckets, and of a bucket.
const (
	recordBytes = int(unsafe.Sizeof(record{})) + 32
	bucketBytes = 8
)

// message is the protobuf message of one series, reused for the next. It points into the record.
type message struct {
	metric    dto.Metric
	counter   dto.Counter
	histogram dto.Histogram
	created   timestamppb.Timestamp
	labels    []label          // labels of the metric
	pairs     []*dto.LabelPair // refer to labels
	bounds    []float64
	buckets   []*dto.Bucket // classic buckets
	isNative  bool
	span      dto.BucketSpan
}

// label is the name and the value of a label.
type label struct{ name, value string }

// newMessage returns a message, a protobuf metric that is reused for one series after the other. Its histogram has
// classic buckets if there are bounds, and native buckets if isNative is true.
func newMessage(bounds []float64, isNative bool) *message {
	m := &message{isNative: isNative}
	if len(bounds) > 0 {
		m.bounds = append(slices.Clone(bounds), math.Inf(1))
	}
	for i := range m.bounds {
		m.buckets = append(m.buckets, &dto.Bucket{UpperBound: &m.bounds[i]})
	}
	m.counter.CreatedTimestamp = &m.created
	m.histogram.CreatedTimestamp = &m.created
	return m
}

// toCalls returns a protobuf metric with the number of calls in r. The metric is valid until the next call of a
// method of m, which overwrites it.
func (m *message) toCalls(r *record) *dto.Metric {
	m.reset(r)
	m.counter.Value = &r.calls
	m.metric.Counter = &m.counter
	return &m.metric
}

// toErrors returns the message for the errors of a series. The message is valid until the next call of a method of m.
func (m *message) toErrors(r *record) *dto.Metric {
	m.reset(r)
	m.counter.Value = &r.errors
	m.metric.Counter = &m.counter
	return &m.metric
}

// toDurations returns a protobuf metric with the histogram of durations in r. The metric is valid until the next
// call of a method of m, which overwrites it.
func (m *message) toDurations(r *record) *dto.Metric {
	m.reset(r)
	h := &m.histogram
	h.SampleCount = &r.spans
	h.SampleSum = &r.seconds
	h.Bucket = m.buckets
	h.Exemplars = nil
	for i, bucket := range m.buckets {
		bucket.CumulativeCount = &r.cumulative[i]
		bucket.Exemplar = nil
	}
	if m.isNative {
		m.setNativeBuckets(r)
	}
	hasExemplar := r.exemplar.Span != 0
	if hasExemplar {
		m.setExemplar(&r.exemplar)
	}
	m.metric.Histogram = h
	return &m.metric
}

// reset sets the labels and the creation time of the message to those of r, and removes the counter and the histogram.
func (m *message) reset(r *record) {
	m.metric.Counter = nil
	m.metric.Histogram = nil
	m.created.Seconds = r.start / 1e9
	m.created.Nanos = int32(r.start % 1e9)
	m.labels = m.labels[:0]
	for name, value := range points.Labels(r.labels) {
		m.labels = append(m.labels, label{name, value})
	}
	for len(m.pairs) < len(m.labels) {
		m.pairs = append(m.pairs, &dto.LabelPair{})
	}
	m.metric.Label = m.pairs[:len(m.labels)]
	for i, pair := range m.metric.Label {
		pair.Name = &m.labels[i].name
		pair.Value = &m.labels[i].value
	}
}

// setNativeBuckets sets the native buckets of the histogram. Protobuf divides them into ranges without gaps, each a
// BucketSpan. The buckets in r have no gaps, so there is at most one range.
func (m *message) setNativeBuckets(r *record) {
	h := &m.histogram
	h.Schema = &r.scale
	h.ZeroCount = &r.zeros
	h.ZeroThreshold = proto.Float64(prometheus.DefNativeHistogramZeroThreshold)
	h.PositiveSpan = nil
	h.PositiveDelta = r.deltas
	if r.length > 0 {
		m.span.Offset = &r.offset
		m.span.Length = &r.length
		h.PositiveSpan = []*dto.BucketSpan{&m.span}
	}
}

// setExemplar adds the exemplar x to the histogram: to the bucket that counts its span if there are classic buckets,
// and to the whole histogram if there are native ones.
func (m *message) setExemplar(x *exemplars.Exemplar) {
	exemplar := newExemplar(x)
	if len(m.buckets) > 0 {
		bucket, _ := slices.BinarySearch(m.bounds, exemplar.GetValue())
		m.buckets[bucket].Exemplar = exemplar
	}
	if m.isNative {
		m.histogram.Exemplars = []*dto.Exemplar{exemplar}
	}
}

// newExemplar returns x as a protobuf message. Its value is the duration in seconds. Like the histogram, newExemplar
// truncates it to fewer digits, so that it is within the bounds of the bucket that counts the span.
func newExemplar(x *exemplars.Exemplar) *dto.Exemplar {
	seconds := sketch.Truncate(x.Duration) / 1e9
	return &dto.Exemplar{
		Label: []*dto.LabelPair{
			newLabelPair("trace_id", fmt.Sprintf("%016x%016x", x.TraceHigh, x.TraceLow)),
			newLabelPair("span_id", fmt.Sprintf("%016x", x.Span)),
		},
		Value:     &seconds,
		Timestamp: timestamppb.New(time.Unix(0, x.End)),
	}
}

func newLabelPair(name, value string) *dto.LabelPair {
	return &dto.LabelPair{Name: &name, Value: &value}
}
