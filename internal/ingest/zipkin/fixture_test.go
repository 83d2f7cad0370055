package zipkin

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
)

// harness is a server on loopback, with an aggregator that counts its spans.
type harness struct {
	*Server
	t          testing.TB
	admit      *admit.Publishers
	aggregator *aggregate.Aggregator
	// client keeps its connection: a second request shows that the first response was read
	client  *http.Transport
	stopped sync.Once

	mu   sync.Mutex
	rows map[string]uint64 // counted spans by service, kind and name
}

func newHarness(t testing.TB, change func(*Config, *aggregate.Config)) *harness {
	t.Helper()
	h := newIdleHarness(t, change)
	h.aggregator.Start()
	return h
}

// newIdleHarness returns a harness whose rings are not drained until its aggregator is started.
func newIdleHarness(t testing.TB, change func(*Config, *aggregate.Config)) *harness {
	t.Helper()
	h := &harness{t: t, rows: map[string]uint64{}, client: &http.Transport{DisableCompression: true}}
	t.Cleanup(h.client.CloseIdleConnections)
	counting := aggregate.DefaultConfig()
	counting.Deliver, counting.Drainers = h.deliver, 2
	config := DefaultConfig()
	config.Addr, config.MaxBody, config.MaxBodyBytes, config.Counters = "127.0.0.1:0", 1<<20, 8<<20, 2
	config.Log = slog.New(slog.DiscardHandler)
	if change != nil {
		change(&config, &counting)
	}
	var err error
	if h.aggregator, err = aggregate.New(counting); err != nil {
		t.Fatal(err)
	}
	admitting := admit.DefaultConfig()
	admitting.Aggregator = h.aggregator
	if h.admit, err = admit.New(admitting); err != nil {
		t.Fatal(err)
	}
	config.Admit = h.admit
	if h.Server, err = New(config); err != nil {
		t.Fatal(err)
	}
	h.Start()
	t.Cleanup(h.stop)
	return h
}

func (h *harness) deliver(s *aggregate.Sealed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for part := range s.Parts {
		key := &s.Keys[part.Key]
		h.rows[fmt.Sprintf("%s %s %s", key.Key.Service, key.Key.Kind,
			key.Key.Resource)] += part.Counts().Spans
	}
	s.Delivery.Resolve(nil)
	s.Release()
}

// stop shuts everything down gracefully, and checks that the statistics match the delivered rows.
func (h *harness) stop() {
	h.t.Helper()
	h.stopped.Do(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := h.Drain(ctx); err != nil {
			h.t.Error(err)
		}
		h.aggregator.Stop()
		stats, delivered := h.admit.Stats(), uint64(0)
		for _, spans := range h.rows {
			delivered += spans
		}
		if stats.Received != delivered+stats.DroppedTotal() || h.Status().BufferedBytes != 0 {
			h.t.Errorf("received %d = delivered %d + dropped %v; %d bytes of bodies are left",
				stats.Received, delivered, stats.Dropped, h.Status().BufferedBytes)
		}
	})
}

// answered is a response.
type answered struct {
	status int
	header http.Header
	body   string
}

// send sends a request in JSON, unless header says otherwise. header has names and values in turn.
func (h *harness) send(method, path string, body []byte, header ...string) (a answered) {
	h.t.Helper()
	r, err := http.NewRequest(method, "http://"+h.Addr()+path, bytes.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	r.Header.Set("Content-Type", mediaJSON)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := h.client.RoundTrip(r)
	if err != nil {
		h.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return answered{answer.StatusCode, answer.Header, string(text)}
}

func (h *harness) post(body []byte, header ...string) answered {
	h.t.Helper()
	return h.send(http.MethodPost, path, body, header...)
}

// reported returns a JSON list of spans of a service. Each number gives other span ids.
func reported(service string, number, spans int) []byte {
	var list []string
	for i := range spans {
		list = append(list,
			fmt.Sprintf(`{"traceId":"%x","id":"%x","kind":"SERVER","name":"get /","timestamp":%d,"duration":1000,`+
				`"localEndpoint":{"serviceName":%q}}`, number+1, i+1, time.Now().UnixMicro(), service))
	}
	return []byte("[" + strings.Join(list, ",") + "]")
}

func packed(message []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(message)
	_ = w.Close()
	return b.Bytes()
}

// destined is an upstream that records its requests and responds as configured.
type destined struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string
	header http.Header // header of the last request
	path   string
}

func newDestination(t testing.TB, answer func(w http.ResponseWriter, n int)) *destined {
	t.Helper()
	d := &destined{}
	d.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		d.mu.Lock()
		d.bodies, d.header, d.path = append(d.bodies, string(body)), r.Header, r.URL.Path
		n := len(d.bodies)
		d.mu.Unlock()
		answer(w, n)
	}))
	t.Cleanup(d.Close)
	return d
}

// forwardTo configures a harness to forward to a URL.
func forwardTo(t testing.TB, url string) func(*Config, *aggregate.Config) {
	t.Helper()
	to, err := Protocol.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	return func(c *Config, _ *aggregate.Config) { c.Forward, c.Buffer = to, 0 }
}
