package fleet

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
)

// tracedSpan is a span stored in the trace backend.
type tracedSpan struct {
	service, name, kind, status string
	seconds                     float64
}

// backend is a trace backend that finds a span by its IDs.
type backend struct {
	*httptest.Server
	mu    sync.Mutex
	spans map[string]tracedSpan // by trace ID and span ID
}

func startBackend(t *testing.T) *backend {
	b := &backend{spans: map[string]tracedSpan{}}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := b.take(r); err != nil {
			t.Error(err)
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(b.Close)
	return b
}

func (b *backend) take(r *http.Request) error {
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(r.Body)
		if err != nil {
			return fmt.Errorf("read what was handed on: %w", err)
		}
		body = unzipped
	}
	text, err := io.ReadAll(body)
	if err != nil {
		return fmt.Errorf("read what was handed on: %w", err)
	}
	request := ptraceotlp.NewExportRequest()
	if err := request.UnmarshalProto(text); err != nil {
		return fmt.Errorf("read what was handed on: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, resource := range request.Traces().ResourceSpans().All() {
		service, _ := resource.Resource().Attributes().Get("service.name")
		for _, scope := range resource.ScopeSpans().All() {
			for _, s := range scope.Spans().All() {
				b.spans[s.TraceID().String()+s.SpanID().String()] = tracedSpan{
					service: service.AsString(), name: s.Name(),
					kind:    "SPAN_KIND_" + strings.ToUpper(s.Kind().String()),
					status:  "STATUS_CODE_" + strings.ToUpper(s.Status().Code().String()),
					seconds: cut(s.EndTimestamp().AsTime().Sub(s.StartTimestamp().AsTime())).Seconds(),
				}
			}
		}
	}
	return nil
}

// TestScraped_Exemplars checks that every exemplar scraped by Prometheus refers to a span in the trace
// backend, with the series of the exemplar and with the duration that is the exemplar's value. It tests
// the text format, with exemplars on buckets, and the protobuf format.
func TestScraped_Exemplars(t *testing.T) {
	for _, s := range scrapes {
		t.Run(s.name, func(t *testing.T) {
			b, otlp := startBackend(t), freeAddress(t)
			d := startDaemon(t, "node-1", 0, "--prometheus", "--otlp-addr", otlp, "--otlp-forward", b.URL)
			p := s.startScraping(t, d.http, "--enable-feature=exemplar-storage")
			r := rand.New(rand.NewPCG(33, 2))
			const rounds, spans = 3, 200
			for range rounds {
				postTraces(t, otlp, r, spans)
				time.Sleep(time.Second) // one interval
			}
			queries := []string{spanmetrics.durations + "_bucket"}
			if s.native {
				queries = append(queries, spanmetrics.durations)
			}
			for _, query := range queries {
				eventually.True(t, "Prometheus has exemplars of "+query,
					func() bool { return len(p.exemplars(query)) > 0 })
				p.mustResolve(b, query)
			}
		})
	}
}

// postTraces sends spans with several names to the daemon, each in its own trace.
func postTraces(t *testing.T, address string, r *rand.Rand, n int) {
	t.Helper()
	traces := ptrace.NewTraces()
	resource := traces.ResourceSpans().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.name", "shop")
	spans := resource.ScopeSpans().AppendEmpty().Spans()
	for range n {
		s := spans.AppendEmpty()
		s.SetName([]string{"GET /cart", "POST /orders"}[r.IntN(2)])
		s.SetKind([]ptrace.SpanKind{ptrace.SpanKindServer, ptrace.SpanKindClient}[r.IntN(2)])
		var trace pcommon.TraceID
		var span pcommon.SpanID
		for i := range trace {
			trace[i] = byte(r.IntN(255)) + 1
		}
		copy(span[:], trace[:])
		s.SetTraceID(trace)
		s.SetSpanID(span)
		if r.IntN(4) == 0 {
			s.Status().SetCode(ptrace.StatusCodeError)
		}
		end := time.Now()
		s.SetStartTimestamp(pcommon.NewTimestampFromTime(end.Add(-time.Duration(1e6 + r.IntN(1e9)))))
		s.SetEndTimestamp(pcommon.NewTimestampFromTime(end))
	}
	body, err := ptraceotlp.NewExportRequestFromTraces(traces).MarshalProto()
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.Post("http://"+address+"/v1/traces", "application/x-protobuf",
		bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("the daemon answers %s", response.Status)
	}
}

// exemplars are the exemplars of a series in the API's format.
type exemplars struct {
	Labels    map[string]string `json:"seriesLabels"`
	Exemplars []struct {
		Labels map[string]string
		Value  string
	}
}

func (p *prometheus) exemplars(promql string) (all []exemplars) {
	p.t.Helper()
	seconds := func(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }
	now := time.Now()
	p.get("query_exemplars", url.Values{
		"query": {promql}, "start": {seconds(now.Add(-time.Hour))}, "end": {seconds(now.Add(time.Minute))},
	}, &all)
	return all
}

// mustResolve looks up the span of each exemplar.
func (p *prometheus) mustResolve(b *backend, promql string) {
	p.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	found := 0
	for _, series := range p.exemplars(promql) {
		for _, e := range series.Exemplars {
			span, there := b.spans[e.Labels["trace_id"]+e.Labels["span_id"]]
			value := p.number(e.Value)
			if want := (tracedSpan{
				series.Labels["service_name"], series.Labels["span_name"], series.Labels["span_kind"],
				series.Labels["status_code"], value,
			}); !there || span != want {
				p.t.Errorf("an exemplar %v of %v is of the span %+v, there: %t", e, series.Labels, span,
					there)
			}
			if le := series.Labels["le"]; le != "" && value > p.number(le) {
				p.t.Errorf("an exemplar of %g seconds stands on the bucket up to %s", value, le)
			}
			found++
		}
	}
	p.t.Logf("%d exemplars of %s resolve", found, promql)
}
