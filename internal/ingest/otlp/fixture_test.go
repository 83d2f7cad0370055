package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/ingest/socket"
	"github.com/spanstatsd/spanstatsd/internal/wire/otlpanswer"
	"github.com/spanstatsd/spanstatsd/internal/wire/protolite"
	"google.golang.org/protobuf/encoding/protowire"
)

// harness is a server on a Unix socket, with an aggregator that counts its spans.
type harness struct {
	*Server
	t          testing.TB
	admit      *admit.Publishers
	aggregator *aggregate.Aggregator
	path       string
	stopped    sync.Once

	mu   sync.Mutex
	rows map[string]uint64 // counted spans by resource
}

func newHarness(t testing.TB, change func(*Config, *aggregate.Config)) *harness {
	t.Helper()
	h := &harness{t: t, rows: map[string]uint64{}, path: filepath.Join(t.TempDir(), "s")}
	counting := aggregate.DefaultConfig()
	counting.Deliver, counting.Drainers = h.deliver, 2
	config := DefaultConfig()
	config.Socket = socket.Config{Path: h.path, Mode: 0o600}
	config.MaxBody, config.MaxBodyBytes, config.Counters = 1<<20, 8<<20, 2
	// long timeouts, so that a slow machine does not fail the tests
	config.headerTimeout, config.readTimeout, config.forwardTimeout = time.Hour, time.Hour, time.Hour
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
	h.aggregator.Start()
	h.Start()
	t.Cleanup(h.stop)
	return h
}

func (h *harness) deliver(s *aggregate.Sealed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for part := range s.Parts {
		h.rows[s.Keys[part.Key].Key.Resource] += part.Counts().Spans
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
		counted := h.aggregator.Stats()
		stats, delivered := h.admit.Stats(), uint64(0)
		for _, spans := range h.rows {
			delivered += spans
		}
		if stats.Received != delivered+stats.DroppedTotal() || counted.Aggregated() != delivered ||
			h.Stats().BufferedBytes != 0 {
			h.t.Errorf("received %d = delivered %d + dropped %v; aggregated %d; %d bytes of bodies are left",
				stats.Received, delivered, stats.Dropped, counted.Aggregated(), h.Stats().BufferedBytes)
		}
	})
}

// client returns a client with its own HTTP/2 or HTTP/1.1 connections.
func (h *harness) client(isHTTP2 bool) *http.Client {
	speaks := &http.Protocols{}
	speaks.SetHTTP1(!isHTTP2)
	speaks.SetUnencryptedHTTP2(isHTTP2)
	transport := &http.Transport{
		Protocols: speaks, DisableCompression: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", h.path)
		},
	}
	h.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// dial returns a raw connection to the server.
func (h *harness) dial() net.Conn {
	h.t.Helper()
	c, err := net.Dial("unix", h.path)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { c.Close() })
	return c
}

// answered is a response of either protocol.
type answered struct {
	status  int    // HTTP status
	grpc    string // gRPC status
	message string
	header  http.Header // header fields and trailers
	body    []byte
}

// send sends a request. header has names and values in turn. It fails the test if there is no response.
func send(t testing.TB, client *http.Client, method, path string, body io.Reader, header ...string) answered {
	t.Helper()
	a, err := try(client, method, path, body, header...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// try sends a request like send, but returns an error if there is no response.
func try(client *http.Client, method, path string, body io.Reader, header ...string) (a answered, err error) {
	r, err := http.NewRequest(method, "http://localhost"+path, body)
	if err != nil {
		return a, err
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := client.Do(r)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	if a.body, err = io.ReadAll(resp.Body); err != nil {
		return a, err
	}
	a.status, a.header = resp.StatusCode, resp.Header.Clone()
	for name, values := range resp.Trailer {
		a.header[name] = values
	}
	a.grpc, a.message = a.header.Get(headerGRPCStatus), a.header.Get(headerGRPCMessage)
	return a, nil
}

func post(t testing.TB, client *http.Client, body []byte, header ...string) answered {
	t.Helper()
	return send(t, client, http.MethodPost, "/v1/traces", bytes.NewReader(body),
		append([]string{"Content-Type", mediaProtobuf}, header...)...)
}

func postGRPC(t testing.TB, client *http.Client, body []byte, header ...string) answered {
	t.Helper()
	return send(t, client, http.MethodPost, signals[signalTraces].grpcPath, bytes.NewReader(body),
		append([]string{"Content-Type", mediaGRPC, "Te", "trailers"}, header...)...)
}

// framed returns a message with its gRPC prefix.
func framed(message []byte, isPacked bool) []byte {
	p := grpcPrefix(len(message), isPacked)
	return append(p[:], message...)
}

func packed(message []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(message)
	_ = w.Close()
	return b.Bytes()
}

// nested appends a length-delimited field.
func nested(b []byte, n protowire.Number, message []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), message)
}

func number(b []byte, n protowire.Number, v uint64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, n, protowire.Fixed64Type), v)
}

// exported returns a request with spans of a service. The ids of the spans start at first, and their names
// alternate among the given number of names.
func exported(service string, first, spans, names int) []byte {
	attribute := nested(nested(nil, 1, []byte("service.name")), 2, nested(nil, 1, []byte(service)))
	var scope []byte
	now := uint64(time.Now().UnixNano())
	for i := range spans {
		id := uint64(first + i + 1)
		s := nested(nil, 1, append(make([]byte, 8), protowire.AppendFixed64(nil, id)...))
		s = nested(s, 2, protowire.AppendFixed64(nil, id))
		s = nested(s, 5, []byte("name "+strconv.Itoa(i%names)))
		s = protowire.AppendVarint(protowire.AppendTag(s, 6, protowire.VarintType), 2)
		s = number(number(s, 7, now-1000), 8, now)
		scope = nested(scope, 2, s)
	}
	return nested(nil, 1, nested(nested(nil, 1, nested(nil, 1, attribute)), 2, scope))
}

// eachField calls with for each field of a message.
func eachField(message []byte, with func(n protowire.Number, number uint64, value []byte)) {
	for f := range protolite.Fields(message) {
		with(f.Number, f.Value, f.Bytes)
	}
}

// retryIn returns the retry delay in gRPC status details.
func retryIn(details string) time.Duration {
	return otlpanswer.ReadStatus(decodeBinary(details)).Retry
}

// write writes a reply as an upstream's response.
func (r *reply) write(w http.ResponseWriter, e encoding, s signal) error {
	if e == encodingGRPC {
		return r.writeGRPC(w, false)
	}
	return r.writeHTTP(w, e, s)
}
