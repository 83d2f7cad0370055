package agent

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

	"github.com/spanstatsd/spanstatsd/internal/flush"
	"github.com/spanstatsd/spanstatsd/internal/flush/request"
	"github.com/spanstatsd/spanstatsd/internal/flush/testagent"
	"github.com/spanstatsd/spanstatsd/internal/flush/testcycle"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

func clientOf(t *testing.T, url string) *httpAgent {
	t.Helper()
	u, err := ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	return newHTTPAgent(u, "1.0", askPatience)
}

func socketIn(t *testing.T) string { return filepath.Join(t.TempDir(), "a.sock") }

// addressOf is a socket, or nothing for a port of the agent's own choice.
func addressOf(t *testing.T, network string) string {
	if network == "unix" {
		return socketIn(t)
	}
	return ""
}

// spansIn is how many a payload's sketches count.
func spansIn(t *testing.T, r testagent.Received) (spans uint64) {
	t.Helper()
	for _, bucket := range r.Payload.Stats {
		for i := range bucket.Stats {
			ok, failed, err := bucket.Stats[i].Latencies()
			if err != nil {
				t.Error(err)
			}
			spans += uint64(ok.Count + failed.Count)
		}
	}
	return spans
}

// bodyOf is a payload whose body is so long. What it says is not looked at.
func bodyOf(n int) *flush.Payload { return &flush.Payload{Body: make([]byte, n)} }

const (
	small = 600
	large = 12 << 20 // more than any socket buffers
)

// What the daemon made is what an agent as strict as the real one reads.
func TestFlushToAnAgent(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			received := make(chan testagent.Received, 2)
			agent := testagent.Start(t, addressOf(t, network), func(r testagent.Received) { received <- r })
			url, err := ParseURL(agent.URL())
			if err != nil {
				t.Fatal(err)
			}
			e, err := New(Config{URL: url, Version: "1.0"})
			if err != nil {
				t.Fatal(err)
			}
			f := start(t, flush.Config{}, e)
			sealed := testcycle.Golden()
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
			problems := append(full.Payload.Problems(), bare.Payload.Problems()...)
			if arrived := spansIn(t, full) + spansIn(t, bare); len(problems) != 0 || arrived != spans {
				t.Errorf("%d of %d spans arrived, and there are problems %q", arrived, spans, problems)
			}
			if s := balanced(t, f, spans); s.Flushed != spans {
				t.Errorf("stats %+v", s)
			}
		})
	}
}

func checkHeaders(t *testing.T, full, bare testagent.Received) {
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
	agent := testagent.Start(t, "", nil)
	p := &flush.Payload{Body: mustEncode(t, testcycle.Spans(1), flush.MinPayloadBytes)[0].Body, Origin: span.Origin{
		Lang: "go\r\nX-Evil: 1", ContainerID: "\x00\x7f", EntityID: " caf\u00e9 ",
	}}
	if got := clientOf(t, agent.URL()).post(t.Context(), p); got.Outcome != flush.OutcomeAccepted {
		t.Errorf("%+v", got)
	}
	if agent.Payloads() != 1 {
		t.Error("the payload did not arrive")
	}
}

func TestStatusDecidesWhetherToTryAgain(t *testing.T) {
	for status, want := range map[int]flush.Outcome{
		200: flush.OutcomeAccepted, 202: flush.OutcomeAccepted, 301: flush.OutcomeRefused, 400: flush.OutcomeRefused, 401: flush.OutcomeRefused, 403: flush.OutcomeRefused, 404: flush.OutcomeNotWanted,
		408: flush.OutcomeNotYet, 413: flush.OutcomeRefused, 429: flush.OutcomeNotYet, 500: flush.OutcomeNotYet, 502: flush.OutcomeNotYet, 503: flush.OutcomeNotYet,
	} {
		agent := testagent.Start(t, "", nil)
		agent.SetFault(func(*http.Request) testagent.Fault {
			return testagent.Fault{Kind: testagent.Answer, Status: status, Header: http.Header{
				"Retry-After": {"7"}, "Datadog-Agent-State": {"s"}, "Location": {"/elsewhere"},
			}}
		})
		got := clientOf(t, agent.URL()).post(t.Context(), bodyOf(small))
		if got.Outcome != want || (got.Err == nil) != (want == flush.OutcomeAccepted) || got.state != "s" {
			t.Errorf("%d: %+v, want flush.Outcome %d", status, got, want)
		}
		if waits := got.After == 7*time.Second; waits != (want == flush.OutcomeNotYet) {
			t.Errorf("%d: wait %v", status, got.After)
		}
	}
}

func TestNobodyListensIsNotYet(t *testing.T) {
	for _, url := range []string{"unix://" + socketIn(t), "http://127.0.0.1:1"} {
		if got := clientOf(t, url).post(t.Context(), bodyOf(small)); got.Outcome != flush.OutcomeNotYet || got.Err == nil {
			t.Errorf("%s: %+v", url, got)
		}
	}
}

// However the connection ends, the payload is sent again only if the agent
// cannot have all of it.
func TestHowTheConnectionEndsDecides(t *testing.T) {
	for name, test := range map[string]struct {
		fault testagent.FaultKind
		size  int
		want  flush.Outcome
	}{
		"closed before writing": {testagent.CloseUnread, small, flush.OutcomeNotYet},
		"closed, much to write": {testagent.CloseUnread, large, flush.OutcomeNotYet},
		"read and closed":       {testagent.CloseRead, small, flush.OutcomeUnknown},
		"read whole and closed": {testagent.CloseRead, 1 << 20, flush.OutcomeUnknown},
	} {
		for _, network := range []string{"tcp", "unix"} {
			t.Run(name+" "+network, func(t *testing.T) {
				agent := testagent.Start(t, addressOf(t, network), nil)
				agent.SetFault(func(*http.Request) testagent.Fault { return testagent.Fault{Kind: test.fault} })
				got := clientOf(t, agent.URL()).post(t.Context(), bodyOf(test.size))
				if got.Outcome != test.want {
					t.Errorf("%+v, want flush.Outcome %d", got, test.want)
				}
				if errors.Is(got.Err, errNoAnswer) != (test.want == flush.OutcomeUnknown) {
					t.Errorf("error %v", got.Err)
				}
			})
		}
	}
}

func TestTimeoutWaitingForTheAnswerIsUnknown(t *testing.T) {
	agent := testagent.Start(t, "", nil)
	asked := make(chan struct{})
	agent.SetFault(func(r *http.Request) testagent.Fault {
		// The whole body has been read when the client is told to give up.
		_, _ = io.Copy(io.Discard, r.Body)
		close(asked)
		return testagent.Fault{Kind: testagent.Hang}
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	if got := clientOf(t, agent.URL()).post(ctx, bodyOf(small)); got.Outcome != flush.OutcomeUnknown {
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
	if got.Outcome != flush.OutcomeNotYet {
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
		if got := client.post(t.Context(), bodyOf(small)); got.Outcome != flush.OutcomeAccepted {
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
	agent := testagent.Start(t, "", nil)
	client := clientOf(t, agent.URL())
	dial := client.whenAsked.DialContext
	for what, last := range map[string]int{"the header": 0, "the body": 1} {
		client.whenAsked.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return request.Watch(&broken{Conn: conn, left: last}), nil
		}
		if got := client.post(t.Context(), bodyOf(small)); got.Outcome != flush.OutcomeNotYet || !errors.Is(got.Err, net.ErrClosed) {
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
	agent := testagent.Start(t, "", nil)
	client := clientOf(t, agent.URL())
	got, err := client.info(t.Context())
	if err != nil || !got.features.Stats || got.features.ObfuscationVersion != 1 || len(got.features.PeerTags) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	body := mustEncode(t, testcycle.Spans(1), flush.MinPayloadBytes)[0].Body
	if answer := client.post(t.Context(), &flush.Payload{Body: body}); answer.state != got.state || got.state == "" {
		t.Errorf("the answer's state is %q, /info hashes to %q", answer.state, got.state)
	}
	agent.SetFault(func(*http.Request) testagent.Fault { return testagent.Fault{Kind: testagent.Answer, Status: 404} })
	if got, err := client.info(t.Context()); err != nil || got.features.Stats {
		t.Errorf("404: %+v, %v", got, err)
	}
	agent.SetFault(func(*http.Request) testagent.Fault { return testagent.Fault{Kind: testagent.Answer, Status: 500} })
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
		if got := client.post(t.Context(), bodyOf(small)); got.Outcome != flush.OutcomeAccepted || got.Err != nil {
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
	if got := clientOf(t, proxy.URL).post(t.Context(), bodyOf(small)); got.Outcome != flush.OutcomeRefused {
		t.Errorf("%+v", got)
	}
}
