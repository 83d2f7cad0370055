package stats

import (
	"fmt"
	"maps"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/spanstatsd/spanstatsd/client"
	"github.com/spanstatsd/spanstatsd/lab/standin/collector"
)

// receiver is a collector in addition to the agent. It validates the requests and stores the data by
// series.
type receiver struct {
	*collector.Collector

	mu  sync.Mutex
	got map[string]*histogram
}

func startReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{got: map[string]*histogram{}}
	var err error
	if r.Collector, err = collector.Start(collector.Config{OnRequest: r.read}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// histogram is the content of a series: spans by bucket, and their total duration.
type histogram struct {
	scale   int32
	zeros   uint64
	buckets map[int32]uint64
	seconds float64

	weights, weighted float64 // adjusted counts of spans, and of their seconds
}

// lower reduces a histogram to a coarser scale.
func (h *histogram) lower(scale int32) {
	coarser := map[int32]uint64{}
	for index, spans := range h.buckets {
		coarser[index>>(h.scale-scale)] += spans
	}
	h.scale, h.buckets = scale, coarser
}

// isLike compares histograms, with tolerance for sums added up in a different order.
func (h *histogram) isLike(other *histogram) bool {
	return h.scale == other.scale && h.zeros == other.zeros && maps.Equal(h.buckets, other.buckets) &&
		math.Abs(h.seconds-other.seconds) <= 1e-9*other.seconds
}

// finest is the scale at which these tests count durations.
const finest = 5

// count counts a span in OpenTelemetry's sense, with its duration truncated like in the agent. Each
// span counts once. The sum is the mean weighted duration times the number of spans.
func (h *histogram) count(s *client.Snapshot) {
	const low = 1<<43 - 1
	nanoseconds := float64(s.Duration)
	truncated := math.Float64frombits(math.Float64bits(nanoseconds) &^ low)
	if truncated == 0 {
		h.zeros++
	} else {
		h.buckets[int32(math.Ceil(math.Log2(truncated/1e9)*(1<<finest)))-1]++
	}
	h.weights, h.weighted = h.weights+s.Weight, h.weighted+s.Weight*nanoseconds/1e9
	spans := h.zeros
	for _, n := range h.buckets {
		spans += n
	}
	h.seconds = h.weighted / h.weights * float64(spans)
}

func (r *receiver) read(request collector.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, resource := range request {
		for _, scope := range resource.Scopes { // a probe has no scopes
			for _, m := range scope.Metrics {
				for j := range m.Points {
					r.add(&m.Points[j])
				}
			}
		}
	}
}

// topLevel is the same for all spans of a series but not part of the key.
const topLevel = "datadog.span.top_level"

func (r *receiver) add(p *collector.Point) {
	attributes := map[string]any{}
	for _, a := range p.Attributes {
		attributes[a.Key] = a.Value
	}
	delete(attributes, topLevel)
	h := &histogram{scale: p.Scale, zeros: p.Zeros, buckets: map[int32]uint64{}, seconds: p.Sum}
	for i, spans := range p.Counts {
		if spans > 0 {
			h.buckets[p.Offset+int32(i)] = spans
		}
	}
	r.got[fmt.Sprint(attributes)] = h // each series occurs once, otherwise the collector reports an error
}

// seriesOf returns the attributes of a span's series in the dialect datadog.
func seriesOf(s *client.Snapshot) string {
	k := s.Key
	k.Normalize(origin.Lang) // like the agent's groups
	attributes := map[string]any{
		"service.name": k.Service, "span.name": k.Resource, "datadog.operation.name": k.Operation,
		"datadog.span.type": k.Type,
		"span.kind":         "SPAN_KIND_" + strings.ToUpper(k.Kind), "status.code": "STATUS_CODE_OK",
		"datadog.svc_src": k.ServiceSource,
		"rpc.response.status_code": map[string]string{
			"0": "OK", "1": "CANCELLED", "4": "DEADLINE_EXCEEDED",
			"14": "UNAVAILABLE",
		}[k.GRPCStatus],
		"datadog.is_trace_root": k.TraceRoot == client.TraceRootTrue,
	}
	maps.DeleteFunc(attributes, func(_ string, value any) bool { return value == "" })
	if s.Error {
		attributes["status.code"] = "STATUS_CODE_ERROR"
	}
	if k.HTTPStatus != 0 {
		attributes["http.response.status_code"] = int64(k.HTTPStatus)
	}
	if k.Synthetics {
		attributes["datadog.origin"] = "synthetics"
	}
	if len(k.PeerTags) > 0 {
		attributes["datadog.peer_tags"] = k.PeerTags
	}
	return fmt.Sprint(attributes)
}

// mustHave compares the received series with the spans.
func (r *receiver) mustHave(t *testing.T, spans []client.Snapshot) {
	t.Helper()
	want := map[string]*histogram{}
	for i := range spans {
		name := seriesOf(&spans[i])
		if want[name] == nil {
			want[name] = &histogram{scale: finest, buckets: map[int32]uint64{}}
		}
		want[name].count(&spans[i])
	}
	for _, problem := range r.Totals().Problems {
		// The collector compares the sum with unweighted durations, which is wrong if spans have
		// different weights.
		if !strings.Contains(problem, " has a sum of ") {
			t.Errorf("the collector found: %s", problem)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for name := range r.got {
		if want[name] == nil {
			t.Errorf("series %s belongs to no span", name)
		}
	}
	for name, w := range want {
		got := r.got[name]
		if got == nil {
			t.Errorf("series %s is missing", name)
			continue
		}
		if w.lower(got.scale); !w.isLike(got) {
			t.Errorf("series %s is %+v\nwant %+v", name, got, w)
		}
	}
}
