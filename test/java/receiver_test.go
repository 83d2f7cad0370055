//go:build languages

package java

import (
	"compress/gzip"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/proto"
)

// receiver is the destination of the application's own exporter.
type receiver struct {
	url      string
	mu       sync.Mutex
	spans    map[string]int // by trace ID
	unmarked int            // requests and resources without the counted marker
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{spans: map[string]int{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if err := r.take(request); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	r.url = server.URL
	return r
}

func (r *receiver) take(request *http.Request) (err error) {
	body := io.Reader(request.Body)
	if request.Header.Get("Content-Encoding") == "gzip" {
		if body, err = gzip.NewReader(body); err != nil {
			return err
		}
	}
	raw, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	var export collector.ExportTraceServiceRequest
	if err := proto.Unmarshal(raw, &export); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if request.Header.Get("Datadog-Client-Computed-Stats") != "yes" {
		r.unmarked++
	}
	for _, resource := range export.ResourceSpans {
		if !slices.ContainsFunc(resource.Resource.GetAttributes(), func(a *common.KeyValue) bool {
			return a.Key == "_dd.stats_computed" && a.Value.GetStringValue() == "true"
		}) {
			r.unmarked++
		}
		for _, scope := range resource.ScopeSpans {
			for _, s := range scope.Spans {
				r.spans[string(s.TraceId)]++
			}
		}
	}
	return nil
}

// share is the application's sampling rate.
const share = 0.01

// holdsTheShare checks that the number of received traces matches the sampling rate, within six
// standard deviations.
func (r *receiver) holdsTheShare(t *testing.T, traces uint64) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	mean, deviation := share*float64(traces), math.Sqrt(float64(traces)*share*(1-share))
	if got := float64(len(r.spans)); got == 0 || math.Abs(got-mean) > 6*deviation {
		t.Errorf("%.0f of %d traces were exported, want %.0f give or take %.0f", got, traces, mean,
			6*deviation)
	}
	t.Logf("%d of %d traces were exported", len(r.spans), traces)
}
