package otlp

import (
	"compress/gzip"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/export"
)

// receiver is a scripted server on a real socket.
type receiver struct {
	*httptest.Server
	answer http.HandlerFunc // answers a payload after its body was read

	mu       sync.Mutex
	payloads []received
	probes   int
}

type received struct {
	header http.Header
	path   string
	proto  string
	host   string
	body   []byte // decompressed
}

// newReceiver listens. Start, StartTLS, or a socket of the test begins to serve.
func newReceiver(t *testing.T, answer http.HandlerFunc) *receiver {
	r := &receiver{answer: answer}
	r.Server = httptest.NewUnstartedServer(r)
	t.Cleanup(r.Close)
	return r
}

// started returns a receiver over TCP without TLS.
func started(t *testing.T, answer http.HandlerFunc) *receiver {
	r := newReceiver(t, answer)
	r.Start()
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var from io.Reader = req.Body
	if req.Header.Get("Content-Encoding") == "gzip" {
		var err error
		if from, err = gzip.NewReader(req.Body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	body, err := io.ReadAll(from)
	if err != nil {
		return
	}
	r.mu.Lock()
	if string(body) == string(noMetrics) {
		r.probes++
		r.mu.Unlock()
		return
	}
	r.payloads = append(r.payloads,
		received{req.Header.Clone(), req.URL.RequestURI(), req.Proto, req.Host, body})
	r.mu.Unlock()
	if r.answer != nil {
		r.answer(w, req)
	}
}

func (r *receiver) got() (payloads []received, probes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.payloads, r.probes
}

// exporterTo returns an exporter for the given variables.
func exporterTo(t *testing.T, url string, change func(*Config)) *Exporter {
	t.Helper()
	endpoint, err := ParseEndpoint(url)
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Variables: Variables{Endpoint: endpoint}, Version: "1.2.3", Dimensions: withAll().Dimensions}
	if change != nil {
		change(&c)
	}
	x, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// onePayload returns a payload of three series with 5, 3 and 2 spans.
func onePayload(t *testing.T, x *Exporter) *export.Payload {
	t.Helper()
	c := newCycle()
	origin := c.Origin(testOrigin)
	for operation, spans := range map[string]int{"five": 5, "three": 3, "two": 2} {
		key := c.Key(origin, testKey(operation))
		for range spans {
			c.Add(0, key, 0, uint64(time.Millisecond), 0, 1)
		}
	}
	var m export.Merger
	var payloads []*export.Payload
	sealed := c.Seal()
	cycle := &export.Cycle{Sealed: sealed, Rows: m.Merge(sealed), Limit: export.DefaultMaxPayloadBytes}
	if lost := x.Encode(cycle, func(p *export.Payload) {
		payloads = append(payloads, p)
	}).Unencodable; lost != 0 || len(payloads) != 1 {
		t.Fatalf("%d payloads, %d spans in none", len(payloads), lost)
	}
	return payloads[0]
}

// deliver makes one attempt, with a deadline that ends only a test that hangs.
func deliver(t *testing.T, x *Exporter, p *export.Payload) export.Attempt {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return x.Deliver(ctx, p)
}

// socketIn returns the path of a Unix socket, and its listener.
func socketIn(t *testing.T) (string, net.Listener) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "otlp.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // also keeps an unused listener from being closed by the garbage collector
	return path, l
}
