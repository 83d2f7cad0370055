package flush

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/standin"
)

func startEmbedded(t *testing.T, cfg standin.Config) *standin.Agent {
	t.Helper()
	a, err := standin.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	return a
}

func clientOf(t *testing.T, url string) *httpAgent {
	t.Helper()
	u, err := ParseAgentURL(url)
	if err != nil {
		t.Fatal(err)
	}
	return newHTTPAgent(u, "1.0", askPatience)
}

func socketIn(t *testing.T) string { return filepath.Join(t.TempDir(), "a.sock") }

// bodyOf is a payload whose body is so long. What it says is not looked at.
func bodyOf(n int) *payload { return &payload{body: make([]byte, n)} }

const (
	small = 600
	large = 12 << 20 // more than any socket buffers
)

// What the daemon made is what an agent as strict as the real one reads.
func TestFlushToAnAgent(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			received := make(chan standin.Received, 2)
			cfg := standin.Config{Network: network, Weighted: true, OnPayload: func(r standin.Received) { received <- r }}
			if network == "unix" {
				cfg.Address = socketIn(t)
			}
			agent := startEmbedded(t, cfg)
			url, err := ParseAgentURL(agent.URL())
			if err != nil {
				t.Fatal(err)
			}
			f, err := New(Config{Agent: url, Version: "1.0"})
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close(t.Context())
			sealed := golden()
			spans := sealed.Spans()
			f.Accept(sealed)
			if err := sealed.Delivery.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			full, bare := <-received, <-received // at once, in either order
			if full.Payload.Service == "" {
				full, bare = bare, full
			}
			checkHeaders(t, full, bare)
			totals := agent.Totals()
			if totals.ProblemCount != 0 || totals.Payloads != 2 || totals.Spans != spans {
				t.Errorf("totals %+v", totals)
			}
			if s := balanced(t, f, spans); s.Flushed != spans {
				t.Errorf("stats %+v", s)
			}
		})
	}
}

func checkHeaders(t *testing.T, full, bare standin.Received) {
	t.Helper()
	for name, want := range map[string]string{
		"Content-Type": "application/msgpack", "Content-Length": fmt.Sprint(len(full.Body)), "User-Agent": "spanstatsd/1.0",
		"Datadog-Meta-Lang": "java", "Datadog-Meta-Lang-Version": "17", "Datadog-Meta-Lang-Interpreter": "OpenJDK",
		"Datadog-Meta-Tracer-Version": "1.50.0", "Datadog-Container-Id": "cid", "Datadog-Entity-Id": "in-7",
		"Datadog-External-Env": "it-false", "Datadog-Obfuscation-Version": "1",
		"Content-Encoding": "", "Accept-Encoding": "", "Idempotency-Key": "",
	} {
		if got := full.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for name := range bare.Header {
		if strings.HasPrefix(name, "Datadog-") {
			t.Errorf("an origin that says nothing sent %s", name)
		}
	}
}

func TestHeadersOfAStrangeOriginCanBeSent(t *testing.T) {
	agent := startEmbedded(t, standin.Config{})
	p := &payload{body: mustEncode(t, someSpans(1), minPayloadBytes)[0].body, origin: span.Origin{
		Lang: "go\r\nX-Evil: 1", ContainerID: "\x00\x7f", EntityID: " caf\u00e9 ",
	}}
	if got := clientOf(t, agent.URL()).post(t.Context(), p); got.outcome != accepted {
		t.Errorf("%+v", got)
	}
	if agent.Totals().Payloads != 1 {
		t.Error("the payload did not arrive")
	}
}

func TestStatusDecidesWhetherToTryAgain(t *testing.T) {
	for status, want := range map[int]outcome{
		200: accepted, 202: accepted, 301: refused, 400: refused, 401: refused, 403: refused, 404: notWanted,
		408: notYet, 413: refused, 429: notYet, 500: notYet, 502: notYet, 503: notYet,
	} {
		agent := startEmbedded(t, standin.Config{})
		agent.SetFault(func(*http.Request) standin.Fault {
			return standin.Fault{Kind: standin.Answer, Status: status, Header: http.Header{
				"Retry-After": {"7"}, "Datadog-Agent-State": {"s"}, "Location": {"/elsewhere"},
			}}
		})
		got := clientOf(t, agent.URL()).post(t.Context(), bodyOf(small))
		if got.outcome != want || (got.err == nil) != (want == accepted) || got.state != "s" {
			t.Errorf("%d: %+v, want outcome %d", status, got, want)
		}
		if waits := got.after == 7*time.Second; waits != (want == notYet) {
			t.Errorf("%d: wait %v", status, got.after)
		}
	}
}

func TestRetryAfterForms(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for header, want := range map[string]time.Duration{
		"": 0, "5": 5 * time.Second, "100000": maxRetryAfter, "-5": 0, "soon": 0,
		"Fri, 02 Jan 2026 03:04:15 GMT": 10 * time.Second, "Fri, 02 Jan 2026 03:04:00 GMT": 0,
		"Fri, 02 Jan 2099 03:04:00 GMT": maxRetryAfter,
	} {
		if got := retryAfter(header, now); got != want {
			t.Errorf("%q: %v, want %v", header, got, want)
		}
	}
}

func TestNobodyListensIsNotYet(t *testing.T) {
	for _, url := range []string{"unix://" + socketIn(t), "http://127.0.0.1:1"} {
		if got := clientOf(t, url).post(t.Context(), bodyOf(small)); got.outcome != notYet || got.err == nil {
			t.Errorf("%s: %+v", url, got)
		}
	}
}

// However the connection ends, the payload is sent again only if the agent
// cannot have all of it.
func TestHowTheConnectionEndsDecides(t *testing.T) {
	for name, test := range map[string]struct {
		fault standin.FaultKind
		size  int
		want  outcome
	}{
		"closed before writing": {standin.CloseUnread, small, notYet},
		"closed, much to write": {standin.CloseUnread, large, notYet},
		"read and closed":       {standin.CloseRead, small, unknown},
		"read whole and closed": {standin.CloseRead, 1 << 20, unknown},
	} {
		for _, network := range []string{"tcp", "unix"} {
			t.Run(name+" "+network, func(t *testing.T) {
				cfg := standin.Config{Network: network}
				if network == "unix" {
					cfg.Address = socketIn(t)
				}
				agent := startEmbedded(t, cfg)
				agent.SetFault(func(*http.Request) standin.Fault { return standin.Fault{Kind: test.fault} })
				got := clientOf(t, agent.URL()).post(t.Context(), bodyOf(test.size))
				if got.outcome != test.want {
					t.Errorf("%+v, want outcome %d", got, test.want)
				}
				if errors.Is(got.err, errNoAnswer) != (test.want == unknown) {
					t.Errorf("error %v", got.err)
				}
			})
		}
	}
}

func TestTimeoutWaitingForTheAnswerIsUnknown(t *testing.T) {
	agent := startEmbedded(t, standin.Config{})
	asked := make(chan struct{})
	agent.SetFault(func(r *http.Request) standin.Fault {
		// The whole body has been read when the client is told to give up.
		_, _ = io.Copy(io.Discard, r.Body)
		close(asked)
		return standin.Fault{Kind: standin.Hang}
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	if got := clientOf(t, agent.URL()).post(ctx, bodyOf(small)); got.outcome != unknown {
		t.Errorf("%+v", got)
	}
}

func TestTimeoutWhileWritingIsNotYet(t *testing.T) {
	listener, err := net.Listen("unix", socketIn(t))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.ReadFull(conn, make([]byte, 1000)) // then no more
		cancel()
		<-t.Context().Done()
	}()
	got := clientOf(t, "unix://"+listener.Addr().String()).post(ctx, bodyOf(large))
	if got.outcome != notYet {
		t.Errorf("%+v", got)
	}
}

// A server that closes idle connections whenever it likes costs nothing: no
// payload is ever written to one that might be dying.
func TestNoConnectionIsUsedTwice(t *testing.T) {
	var connections, requests atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		requests.Add(1)
	}))
	server.Config.ConnState = func(conn net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			connections.Add(1)
		case http.StateIdle:
			_ = conn.Close()
		}
	}
	server.Start()
	defer server.Close()
	client := clientOf(t, server.URL)
	for i := range 20 {
		if got := client.post(t.Context(), bodyOf(small)); got.outcome != accepted {
			t.Fatalf("payload %d: %+v", i, got)
		}
	}
	if connections.Load() != 20 || requests.Load() != 20 {
		t.Errorf("%d connections, %d requests for 20 payloads", connections.Load(), requests.Load())
	}
}

// net/http calls a request written when its end is still in a buffer. If that
// end then cannot be written, the agent has not got the request.
func TestFailureOfTheLastWriteIsNotYet(t *testing.T) {
	agent := startEmbedded(t, standin.Config{})
	client := clientOf(t, agent.URL())
	dial := client.whenAsked.DialContext
	for what, last := range map[string]int{"the header": 0, "the body": 1} {
		client.whenAsked.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &watchedConn{Conn: &broken{Conn: conn, left: last}}, nil
		}
		if got := client.post(t.Context(), bodyOf(small)); got.outcome != notYet || !errors.Is(got.err, net.ErrClosed) {
			t.Errorf("%s: %+v", what, got)
		}
	}
}

// broken is a connection that only so many writes are left to.
type broken struct {
	net.Conn
	left int
}

func (b *broken) Write(p []byte) (int, error) {
	if b.left--; b.left < 0 {
		return 0, net.ErrClosed
	}
	return b.Conn.Write(p)
}

func TestInfoOverHTTP(t *testing.T) {
	agent := startEmbedded(t, standin.Config{})
	client := clientOf(t, agent.URL())
	got, err := client.info(t.Context())
	if err != nil || !got.features.Stats || got.features.ObfuscationVersion != 1 || len(got.features.PeerTags) != 44 {
		t.Fatalf("%+v, %v", got, err)
	}
	body := mustEncode(t, someSpans(1), minPayloadBytes)[0].body
	if answer := client.post(t.Context(), &payload{body: body}); answer.state != got.state || got.state == "" {
		t.Errorf("the answer's state is %q, /info hashes to %q", answer.state, got.state)
	}
	agent.SetFault(func(*http.Request) standin.Fault { return standin.Fault{Kind: standin.Answer, Status: 404} })
	if got, err := client.info(t.Context()); err != nil || got.features.Stats {
		t.Errorf("404: %+v, %v", got, err)
	}
	agent.SetFault(func(*http.Request) standin.Fault { return standin.Fault{Kind: standin.Answer, Status: 500} })
	if _, err := client.info(t.Context()); err == nil {
		t.Error("500 was taken for info")
	}
}

func TestInfoIsBounded(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"version": "`))
		_, _ = w.Write(bytes.Repeat([]byte("x"), 2*maxInfoBytes))
		_, _ = w.Write([]byte(`"}`))
	}))
	defer server.Close()
	if _, err := clientOf(t, server.URL).info(t.Context()); err == nil {
		t.Error("two megabytes were read")
	}
}

// A proxy that knows no Expect says so once, and gets the payload.
func TestExpectationFailed(t *testing.T) {
	var asked, taken atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Expect") != "" {
			asked.Add(1)
			w.WriteHeader(http.StatusExpectationFailed)
			return
		}
		if body, err := io.ReadAll(r.Body); err == nil && len(body) == small {
			taken.Add(1)
		}
	}))
	defer proxy.Close()
	client := clientOf(t, proxy.URL)
	for range 3 {
		if got := client.post(t.Context(), bodyOf(small)); got.outcome != accepted || got.err != nil {
			t.Errorf("%+v", got)
		}
	}
	if asked.Load() != 1 || taken.Load() != 3 {
		t.Errorf("asked %d times and took %d payloads", asked.Load(), taken.Load())
	}
}

// One that says so of every request is refusing.
func TestExpectationAlwaysFailed(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusExpectationFailed)
	}))
	defer proxy.Close()
	if got := clientOf(t, proxy.URL).post(t.Context(), bodyOf(small)); got.outcome != refused {
		t.Errorf("%+v", got)
	}
}
