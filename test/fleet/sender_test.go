package fleet

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
)

// sender replaces a daemon in tests of the tiers alone. Every second it sends the oracle's counts as
// deltas, one request at a time, and retries until the request is accepted.
type sender struct {
	t    *testing.T
	url  string
	many int

	mu    sync.Mutex
	now   *oracle
	began time.Time

	refused int // requests that were not accepted at the first attempt
	sent    int // total length of the requests
	points  int
}

func (s *sender) origins() int { return s.many }

func (s *sender) publish(spans []loadedSpan) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range spans {
		s.now.count(s.t, s.name(&spans[i]), spans[i].duration)
	}
	return nil
}

func (s *sender) name(span *loadedSpan) string {
	return series(map[string]string{
		"job": "shop", "host_name": "sender", "container_id": fmt.Sprint("container-", span.origin),
		"span_name": span.shape.name, "span_kind": span.shape.kind, "status_code": span.shape.status(),
	})
}

// deliver sends the counts since the last call.
func (s *sender) deliver() {
	s.mu.Lock()
	counted, from, to := s.now.counted(s.t), s.began, time.Now()
	s.now, s.began = newOracle(s.t), to
	s.mu.Unlock()
	for names := range slices.Chunk(slices.Sorted(maps.Keys(counted)), requestSeries) {
		part := map[string]*distribution{}
		for _, name := range names {
			part[name] = counted[name]
		}
		body, err := pmetricotlp.NewExportRequestFromMetrics(s.metrics(part, from, to)).MarshalProto()
		if err != nil {
			s.t.Fatal(err)
		}
		s.post(body)
		s.sent, s.points = s.sent+len(body), s.points+2*len(part)
	}
}

// requestSeries is the number of series per request, that of a busy pod.
const requestSeries = 500

// post sends a request until it is accepted.
func (s *sender) post(body []byte) {
	for {
		response, err := http.Post(s.url+"/v1/metrics", "application/x-protobuf", bytes.NewReader(body))
		if err == nil {
			said, _ := io.ReadAll(response.Body)
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return
			}
			if response.StatusCode != http.StatusServiceUnavailable {
				s.t.Fatalf("the load balancer answers %s: %q", response.Status, said)
			}
		}
		s.refused++
		time.Sleep(100 * time.Millisecond)
	}
}

func (s *sender) metrics(counted map[string]*distribution, from, to time.Time) pmetric.Metrics {
	metrics := pmetric.NewMetrics()
	for name, d := range counted {
		values := strings.Split(name, separator)
		r := metrics.ResourceMetrics().AppendEmpty()
		for i, attribute := range []string{"service.name", "host.name", "container.id"} {
			r.Resource().Attributes().PutStr(attribute, values[i])
		}
		scope := r.ScopeMetrics().AppendEmpty()
		m := scope.Metrics().AppendEmpty()
		m.SetName(durations)
		m.SetUnit("s")
		h := m.SetEmptyExponentialHistogram()
		h.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
		p := h.DataPoints().AppendEmpty()
		fillPoint(p, d)
		fillSeries(p, values[3:], from, to)
		m = scope.Metrics().AppendEmpty()
		m.SetName(calls)
		sum := m.SetEmptySum()
		sum.SetIsMonotonic(true)
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
		n := sum.DataPoints().AppendEmpty()
		n.SetIntValue(int64(d.count))
		fillSeries(n, values[3:], from, to)
	}
	return metrics
}

// fillSeries sets the attributes and the time window of a point of either kind.
func fillSeries(p interface {
	SetStartTimestamp(pcommon.Timestamp)
	SetTimestamp(pcommon.Timestamp)
	Attributes() pcommon.Map
}, values []string, from, to time.Time,
) {
	p.SetStartTimestamp(pcommon.NewTimestampFromTime(from))
	p.SetTimestamp(pcommon.NewTimestampFromTime(to))
	for i, attribute := range []string{"span.name", "span.kind", "status.code"} {
		p.Attributes().PutStr(attribute, values[i])
	}
}

func fillPoint(p pmetric.ExponentialHistogramDataPoint, d *distribution) {
	p.SetScale(int32(d.scale))
	p.SetCount(d.count)
	p.SetSum(d.sum)
	p.SetZeroCount(d.zeros)
	first, last := 1<<30, -1<<30
	for i := range d.buckets {
		first, last = min(first, i), max(last, i)
	}
	if len(d.buckets) == 0 {
		return
	}
	p.Positive().SetOffset(int32(first))
	counts := make([]uint64, last-first+1)
	for i, n := range d.buckets {
		counts[i-first] = n
	}
	p.Positive().BucketCounts().FromRaw(counts)
}
