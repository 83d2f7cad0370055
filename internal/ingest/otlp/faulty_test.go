package otlp

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
)

// fault is a failure of an upstream, and the resulting response to the SDK. One of meets and answers is set.
type fault struct {
	meets   func(c net.Conn)
	answers func(w http.ResponseWriter, r *http.Request)
	http    int    // HTTP status for an SDK with OTLP/HTTP
	grpc    string // gRPC status for an SDK with OTLP/gRPC
	retry   string // value of the Retry-After header
	outcome receiver.ForwardOutcome
	soon    bool // whether the upstream gets only a short timeout
}

const endless = 1 << 20

// faults has the faults by their names in docs/faults.md.
var faults = map[string]fault{
	"never answers": {answers: func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
	}, http: 504, grpc: "4", outcome: receiver.OutcomeUnreachable, soon: true},
	"answers 429 with Retry-After": {answers: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusTooManyRequests)
	}, http: 429, grpc: "14", retry: "7", outcome: receiver.OutcomeRetryable},
	"answers half": {answers: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = w.Write(make([]byte, 10))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}, http: 503, grpc: "14", retry: "1", outcome: receiver.OutcomeUnreachable},
	"breaks off before it answers": {answers: func(http.ResponseWriter, *http.Request) {
		panic(http.ErrAbortHandler)
	}, http: 503, grpc: "14", retry: "1", outcome: receiver.OutcomeUnreachable},
	"resets at once": {meets: func(c net.Conn) {
		reset(c)
	}, http: 503, grpc: "14", retry: "1", outcome: receiver.OutcomeUnreachable},
	"resets while it reads": {meets: func(c net.Conn) {
		_, _ = c.Read(make([]byte, 100))
		reset(c)
	}, http: 503, grpc: "14", retry: "1", outcome: receiver.OutcomeUnreachable},
	"answers no HTTP": {meets: func(c net.Conn) {
		_, _ = io.WriteString(c, "220 mail.example ESMTP\r\n\r\n")
		_, _ = io.Copy(io.Discard, c)
	}, http: 503, grpc: "14", retry: "1", outcome: receiver.OutcomeUnreachable},
	"answers an endless header": {meets: func(c net.Conn) {
		_, _ = c.Read(make([]byte, 100))
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nX: "+strings.Repeat("x", endless))
		_, _ = io.Copy(io.Discard, c)
	}, http: 503, grpc: "14", retry: "1", outcome: receiver.OutcomeUnreachable},
}

// reset lets Close reset the connection without reading the rest of its data.
func reset(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0) }

// faulty is an upstream that fails until it is healed.
type faulty struct {
	net.Listener
	fault
	isHealed atomic.Bool
	accepted atomic.Int64 // requests accepted after healing
}

func newFaulty(t *testing.T, f fault, isGRPC bool) (to *faulty, url string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	to = &faulty{Listener: listener, fault: f}
	speaks := &http.Protocols{}
	speaks.SetHTTP1(!isGRPC)
	speaks.SetUnencryptedHTTP2(isGRPC)
	server := &http.Server{
		Protocols: speaks,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			if !to.isHealed.Load() {
				to.answers(w, r)
				return
			}
			to.accepted.Add(1)
			if isGRPC {
				_ = successReply().writeGRPC(w, false)
			}
		}),
	}
	go func() { _ = server.Serve(to) }()
	t.Cleanup(func() { server.Close() })
	scheme := map[bool]string{false: "http://", true: "grpc://"}[isGRPC]
	return to, scheme + listener.Addr().String()
}

// Accept passes each connection to meets, if the fault has it, until the upstream is healed.
func (f *faulty) Accept() (net.Conn, error) {
	for {
		c, err := f.Listener.Accept()
		if err != nil || f.meets == nil || f.isHealed.Load() {
			return c, err
		}
		go func() {
			defer c.Close()
			f.meets(c)
		}()
	}
}

// TestUpstream_Faults checks, for every fault and every pair of protocols, that the SDK is asked to retry, that
// the receiver keeps no memory, and that it serves other requests in the meantime. After the upstream has recovered
// it accepts the request, whose spans are counted once.
func TestUpstream_Faults(t *testing.T) {
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			for _, isGRPC := range []bool{false, true} {
				to, url := newFaulty(t, fault, isGRPC)
				forward := forwardTo(t, url)
				h := newHarness(t, func(c *Config, a *aggregate.Config) {
					forward(c, a)
					if fault.soon {
						c.forwardTimeout = 50 * time.Millisecond
					}
				})
				plain, streams := h.client(false), h.client(true)
				one, other := exported("shop", 0, 10, 1), exported("shop", 100, 10, 1)
				if a := post(t, plain, one); a.status != fault.http && (a.status != 503 || !isGRPC) ||
					a.header.Get("Retry-After") != fault.retry {
					t.Errorf("to gRPC %v: answered %d, %v", isGRPC, a.status, a.header)
				}
				if a := postGRPC(t, streams, framed(other, false)); a.grpc != fault.grpc {
					t.Errorf("to gRPC %v: gRPC answered %+v", isGRPC, a)
				}
				if a := send(t, plain, http.MethodGet, "/v1/traces",
					nil); a.status != http.StatusMethodNotAllowed {
					t.Errorf("to gRPC %v: another is answered %d", isGRPC, a.status)
				}
				eventually.True(t, "nothing is held", func() bool { return h.Stats().BufferedBytes == 0 })
				if got := h.Stats().Forwarded[fault.outcome.String()]; got != 2 {
					t.Errorf("to gRPC %v: %v", isGRPC, h.Stats().Forwarded)
				}
				last := h.Stats().Refusal
				if last == nil || last.HasResponded != (fault.outcome == receiver.OutcomeRetryable) || last.Message == "" {
					t.Errorf("to gRPC %v: the last request is reported as %+v", isGRPC, last)
				}
				to.isHealed.Store(true)
				eventually.True(t, "the request is accepted", func() bool {
					a, err := try(plain, http.MethodPost, "/v1/traces", bytes.NewReader(one), "Content-Type",
						mediaProtobuf)
					return err == nil && a.status == http.StatusOK
				})
				eventually.True(t, "the other request is accepted", func() bool {
					a, err := try(streams, http.MethodPost, signals[signalTraces].grpcPath,
						bytes.NewReader(framed(other, false)), "Content-Type", mediaGRPC)
					return err == nil && a.grpc == "0"
				})
				if last := h.Stats().Refusal; last != nil {
					t.Errorf("to gRPC %v: the last request was accepted, but is reported as %+v", isGRPC, last)
				}
				h.stop()
				if h.rows["name 0"] != 20 || to.accepted.Load() != 2 {
					t.Errorf("to gRPC %v: counted %v, and %d requests were accepted", isGRPC, h.rows,
						to.accepted.Load())
				}
			}
		})
	}
}

// TestUpstream_SlowResponse checks that the receiver waits longer for a slow response than for a connection.
func TestUpstream_SlowResponse(t *testing.T) {
	asked := make(chan struct{})
	to := newCollector(t, false, func(http.ResponseWriter, int) {
		close(asked)
		time.Sleep(20 * time.Millisecond)
	})
	forward := forwardTo(t, to.url())
	h := newHarness(t, func(c *Config, a *aggregate.Config) { forward(c, a); c.Buffer = time.Millisecond })
	if a := post(t, h.client(false), exported("shop", 0, 1, 1)); a.status != http.StatusOK {
		t.Errorf("answered %+v", a)
	}
	<-asked
	if stats := h.Stats(); stats.Waited != 0 || stats.Forwarded["accepted"] != 1 {
		t.Errorf("%+v", stats)
	}
}
