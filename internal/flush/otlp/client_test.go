package otlp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/flush"
)

// serveRaw answers by hand, a connection a request, and is given its head.
func serveRaw(t *testing.T, serve func(conn net.Conn, head string)) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				r := bufio.NewReader(conn)
				head := ""
				for !strings.HasSuffix(head, "\r\n\r\n") {
					line, err := r.ReadString('\n')
					if err != nil {
						return
					}
					head += line
				}
				serve(&readConn{conn, r}, head)
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

// readConn is a connection of which a part was read already.
type readConn struct {
	net.Conn
	r *bufio.Reader
}

func (c *readConn) Read(p []byte) (int, error) { return c.r.Read(p) }

const (
	goOn  = "HTTP/1.1 100 Continue\r\n\r\n"
	taken = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
)

func isProbe(head string) bool {
	return strings.Contains(head, fmt.Sprintf("Content-Length: %d\r\n", len(noMetrics)))
}

// readBody reads as many bytes as the head announces.
func readBody(t *testing.T, conn net.Conn, head string) {
	var length int64
	for line := range strings.SplitSeq(head, "\r\n") {
		_, _ = fmt.Sscanf(line, "Content-Length: %d", &length)
	}
	if _, err := io.CopyN(io.Discard, conn, length); err != nil {
		t.Errorf("read body: %v", err)
	}
}

// giveUp is a context that ends when a server has seen what the test is about, however
// long that takes.
func giveUp(t *testing.T) (ctx context.Context, seen func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx, cancel
}

func TestWhoIsNotThereHasNothing(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
	x := exporterTo(t, "http://"+l.Addr().String(), nil)
	a := deliver(t, x, onePayload(t, x))
	if a.Outcome != flush.OutcomeNotYet || !a.Silent || a.Err == nil {
		t.Errorf("%+v, want another try", a)
	}
}

// TestWhoHangsHasNothing: it takes connections and never asks for a body, not even a probe's.
func TestWhoHangsHasNothing(t *testing.T) {
	ctx, seen := giveUp(t)
	url := serveRaw(t, func(conn net.Conn, _ string) {
		seen()
		_, _ = io.Copy(io.Discard, conn)
	})
	x := exporterTo(t, url, nil)
	if a := x.Deliver(ctx, onePayload(t, x)); a.Outcome != flush.OutcomeNotYet || !a.Silent {
		t.Errorf("%+v, want another try", a)
	}
}

// TestWhoHangsAfterItAskedBeforeHasNothing: what was asked for once is not sent unasked.
func TestWhoHangsAfterItAskedBeforeHasNothing(t *testing.T) {
	ctx, seen := giveUp(t)
	var unasked atomic.Int32
	url := serveRaw(t, func(conn net.Conn, head string) {
		if isProbe(head) {
			_, _ = io.WriteString(conn, goOn)
			readBody(t, conn, head)
			_, _ = io.WriteString(conn, taken)
			return
		}
		_ = conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		n, _ := conn.Read(make([]byte, 1))
		unasked.Add(int32(n))
		seen()
	})
	x := exporterTo(t, url, nil)
	if a := x.Deliver(ctx, onePayload(t, x)); a.Outcome != flush.OutcomeNotYet || !a.Silent {
		t.Errorf("%+v, want another try", a)
	}
	if unasked.Load() > 0 || x.client.manner.load() != inDoubt {
		t.Error("who was silent is trusted, or has what it did not ask for")
	}
}

// TestWhoGoesAfterAWholePayloadIsAmbiguous, and is asked by a probe before the next one.
func TestWhoGoesAfterAWholePayloadIsAmbiguous(t *testing.T) {
	for _, keeps := range []bool{false, true} {
		ctx, seen := giveUp(t)
		url := serveRaw(t, func(conn net.Conn, head string) {
			_, _ = io.WriteString(conn, goOn)
			readBody(t, conn, head)
			switch {
			case isProbe(head):
				_, _ = io.WriteString(conn, taken)
			case keeps:
				seen()
				_, _ = io.Copy(io.Discard, conn) // and answers nothing
			}
		})
		x := exporterTo(t, url, nil)
		a := x.Deliver(ctx, onePayload(t, x))
		if a.Outcome != flush.OutcomeUnknown || !a.Silent || !errors.Is(a.Err, errNoAnswer) {
			t.Errorf("connection kept %t: %+v, want that nobody knows", keeps, a)
		}
		if x.client.manner.load() != inDoubt {
			t.Error("who was silent is trusted")
		}
	}
}

// TestWhoTakesPartOfAPayloadHasNothing.
func TestWhoTakesPartOfAPayloadHasNothing(t *testing.T) {
	url := serveRaw(t, func(conn net.Conn, head string) {
		_, _ = io.WriteString(conn, goOn)
		if isProbe(head) {
			readBody(t, conn, head)
			_, _ = io.WriteString(conn, taken)
			return
		}
		_, _ = io.CopyN(io.Discard, conn, 100)
		_ = conn.(*readConn).Conn.(*net.TCPConn).SetLinger(0) // a reset, while it writes
	})
	x := exporterTo(t, url, nil)
	p := onePayload(t, x)
	p.Body = append(p.Body, make([]byte, 32<<20)...) // more than the kernel takes
	if a := deliver(t, x, p); a.Outcome != flush.OutcomeNotYet || !a.Silent {
		t.Errorf("%+v, want another try", a)
	}
}

// TestWhoNeverAsksGetsEverything: a proxy that knows no Expect, or says so.
func TestWhoNeverAsksGetsEverything(t *testing.T) {
	for name, answers := range map[string]string{
		"is silent about it": "",
		"refuses it":         "HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n",
	} {
		bodies := make(chan string, 10)
		url := serveRaw(t, func(conn net.Conn, head string) {
			if answers != "" && strings.Contains(head, "Expect:") && !isProbe(head) {
				_, _ = io.WriteString(conn, answers)
				return
			}
			if answers != "" && isProbe(head) {
				_, _ = io.WriteString(conn, goOn)
			}
			readBody(t, conn, head)
			bodies <- head
			_, _ = io.WriteString(conn, taken)
		})
		endpoint, _ := ParseEndpoint(url)
		x := exporterTo(t, url, nil)
		x.client.unasked = newTransport(endpoint, nil, time.Millisecond)
		for range 2 {
			if a := deliver(t, x, onePayload(t, x)); a.Outcome != flush.OutcomeAccepted {
				t.Errorf("who %s: %+v", name, a)
			}
		}
		if len(bodies) != 3 { // of a probe and two payloads
			t.Errorf("who %s got %d bodies", name, len(bodies))
		}
	}
}

func TestARequestIsWhatTheSpecificationSays(t *testing.T) {
	r := started(t, nil)
	headers, err := parseHeaders("Api-Key=s%20ecret,host=metrics.example")
	if err != nil {
		t.Fatal(err)
	}
	x := exporterTo(t, r.URL+"/base/v1/metrics?tenant=a", func(c *Config) { c.Headers, c.Compress = headers, true })
	p := onePayload(t, x)
	if a := deliver(t, x, p); a.Outcome != flush.OutcomeAccepted {
		t.Fatalf("%+v", a)
	}
	payloads, probes := r.got()
	if len(payloads) != 1 || probes != 1 {
		t.Fatalf("%d payloads and %d probes", len(payloads), probes)
	}
	got := payloads[0]
	for name, want := range map[string]string{
		"Content-Type": contentType, "Content-Encoding": "gzip", "User-Agent": "spanstatsd/1.2.3", "Api-Key": "s ecret",
	} {
		if got.header.Get(name) != want {
			t.Errorf("%s: %q, want %q", name, got.header.Get(name), want)
		}
	}
	if got.path != "/base/v1/metrics?tenant=a" || got.host != "metrics.example" || string(got.body) != string(unpacked(p.Body)) {
		t.Errorf("%s of %s, %d bytes, want %d", got.path, got.host, len(got.body), len(unpacked(p.Body)))
	}
}

// TestARedirectionIsNotFollowed: who answers elsewhere gets neither payload nor headers.
func TestARedirectionIsNotFollowed(t *testing.T) {
	elsewhere := started(t, nil)
	r := started(t, func(w http.ResponseWriter, req *http.Request) {
		http.Redirect(w, req, elsewhere.URL, http.StatusTemporaryRedirect)
	})
	x := exporterTo(t, r.URL, nil)
	deliver(t, x, onePayload(t, x))
	if payloads, probes := elsewhere.got(); len(payloads)+probes != 0 {
		t.Error("a redirection was followed")
	}
}

func TestASocketIsAnEndpoint(t *testing.T) {
	path, l := socketIn(t)
	r := newReceiver(t, nil)
	_ = r.Listener.Close()
	r.Listener = l
	r.Start()
	x := exporterTo(t, "unix://"+path, nil)
	if a := deliver(t, x, onePayload(t, x)); a.Outcome != flush.OutcomeAccepted {
		t.Fatalf("%+v", a)
	}
	if payloads, _ := r.got(); payloads[0].path != "/v1/metrics" || payloads[0].host != "localhost" {
		t.Errorf("%s of %s", payloads[0].path, payloads[0].host)
	}
	if x.URL() != "unix://"+path {
		t.Errorf("shown as %s", x.URL())
	}
}

// TestATimeOutIsTheOperators: shorter than the caller's.
func TestATimeOutIsTheOperators(t *testing.T) {
	url := serveRaw(t, func(conn net.Conn, _ string) { _, _ = io.Copy(io.Discard, conn) })
	x := exporterTo(t, url, func(c *Config) { c.Timeout = 20 * time.Millisecond })
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if a := x.Deliver(ctx, onePayload(t, x)); a.Outcome != flush.OutcomeNotYet || !errors.Is(a.Err, context.DeadlineExceeded) || ctx.Err() != nil {
		t.Errorf("%+v", a)
	}
}

// TestWhoSpeaksGRPCIsNamed: the mistake that is made most.
func TestWhoSpeaksGRPCIsNamed(t *testing.T) {
	x := exporterTo(t, "http://127.0.0.1:4317/v1/metrics", nil)
	if err := x.client.failed("probe", io.EOF); !strings.Contains(err.Error(), "4318") || !errors.Is(err, io.EOF) {
		t.Errorf("%v", err)
	}
	x = exporterTo(t, "http://127.0.0.1:4318/v1/metrics", nil)
	if err := x.client.failed("probe", io.EOF); strings.Contains(err.Error(), "4317") {
		t.Errorf("%v", err)
	}
}
