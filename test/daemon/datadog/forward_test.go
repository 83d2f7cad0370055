package datadog

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/daemon"
	"github.com/spanstatsd/spanstatsd/internal/export/agent"
)

// before starts a daemon with a misbehaving agent.
func before(t *testing.T, misbehave func(net.Conn, *bufio.Reader)) *proxied {
	t.Helper()
	healthy := startAgent(t)
	socket, _ := misbehavingAgent(t, healthy, misbehave)
	return start(t, healthy, func(c *daemon.Config) {
		c.Agent.URL = agent.URL{Network: "unix", Address: socket}
	})
}

// receiveComplete reads a complete request.
func receiveComplete(t *testing.T, from *bufio.Reader) {
	t.Helper()
	r, err := http.ReadRequest(from)
	if err == nil {
		_, err = io.Copy(io.Discard, r.Body)
	}
	if err != nil {
		t.Error(err)
	}
}

// TestForward_ResponseBeforeEndOfBody has an agent refuse a body without reading it completely, on a
// connection that it keeps open. The tracer must get the response, and the connection must not be
// reused.
func TestForward_ResponseBeforeEndOfBody(t *testing.T) {
	ended := make(chan struct{})
	defer close(ended)
	p := before(t, func(conn net.Conn, _ *bufio.Reader) {
		_, _ = io.WriteString(conn, "HTTP/1.1 413 x\r\nContent-Length: 0\r\n\r\n")
		<-ended
	})
	body := padded(t, 3<<20) // larger than any socket buffer
	for i, want := range []string{"413", "200"} {
		if got := p.attempt(body); got != want {
			t.Errorf("attempt %d: response %s, want %s", i, got, want)
		}
	}
	p.free()
	if accounting := p.stop(); accounting.Received != 1 || accounting.Flushed != 1 {
		t.Errorf("accounting: %+v", accounting)
	}
}

// TestForward_AgentReadsLate checks that an agent that starts late to read a long body gets all of it.
func TestForward_AgentReadsLate(t *testing.T) {
	body := padded(t, 3<<20)
	p := before(t, func(conn net.Conn, from *bufio.Reader) {
		time.Sleep(5 * slowWrite)
		r, err := http.ReadRequest(from)
		if err != nil {
			t.Error(err)
			return
		}
		if got, err := io.ReadAll(r.Body); !bytes.Equal(got, body) {
			t.Errorf("the agent received %d of %d bytes: %v", len(got), len(body), err)
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 202 x\r\nContent-Length: 0\r\n\r\n")
	})
	if got := p.attempt(body); got != "202" {
		t.Errorf("response %s", got)
	}
}

// slowWrite is the time after which a write that is still blocked makes the daemon check for an early
// response.
const slowWrite = 20 * time.Millisecond

// TestForward_ClosedConnectionIsNotReused checks that the daemon closes a connection with unsolicited
// data from the agent, and uses neither it nor a connection closed by the agent for another request.
func TestForward_ClosedConnectionIsNotReused(t *testing.T) {
	const response = "HTTP/1.1 202 x\r\nContent-Length: 0\r\n\r\n"
	for name, test := range map[string]struct {
		first     string
		trailing  string // sent once the tracer has its response
		keepAlive bool
	}{
		"a second response later": {first: response, trailing: response, keepAlive: true},
		"closed":                  {first: response},
		"closed, as announced": {first: strings.Replace(response, "\r\n\r\n", "\r\nConnection: close\r\n\r\n",
			1), keepAlive: true},
		"two responses":                  {first: response + response, keepAlive: true},
		"a response without length":      {first: "HTTP/1.0 202 x\r\n\r\nto the end of the connection"},
		"longer than its length":         {first: response + "more", keepAlive: true},
		"a response after a chunked one": {first: "HTTP/1.1 202 x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n" + response, keepAlive: true},
	} {
		t.Run(name, func(t *testing.T) {
			responded, over, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
			defer close(ended)
			p := before(t, func(conn net.Conn, from *bufio.Reader) {
				receiveComplete(t, from)
				_, _ = io.WriteString(conn, test.first)
				if test.trailing != "" {
					<-responded
					_, _ = io.WriteString(conn, test.trailing)
				}
				if test.keepAlive {
					_, _ = io.Copy(io.Discard, from) // until the daemon closes it
				}
				conn.Close()
				close(over)
				<-ended
			})
			for i, want := range []string{"202", "200", "200"} {
				body := trace()
				got := p.attempt(body)
				if got == "cut" { // the transport has not seen yet that the connection is over
					got = p.attempt(body)
				}
				if got != want {
					t.Errorf("request %d: response %s, want %s", i, got, want)
				}
				if i == 0 {
					close(responded)
				}
				<-over
			}
			if accounting := p.stop(); accounting.Received != 3 || accounting.Flushed != 3 {
				t.Errorf("accounting: %+v", accounting)
			}
		})
	}
}

// TestForward_ResponseIsComplete checks that header fields, except those of the connection, and chunks
// are preserved.
func TestForward_ResponseIsComplete(t *testing.T) {
	p := before(t, func(conn net.Conn, from *bufio.Reader) {
		receiveComplete(t, from)
		for _, piece := range []string{
			"HTTP/1.1 203 x\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5\r\nX-Many: a\r\nX-Many: b\r\nTrailer: X-Last\r\nTransfer-Encoding: chunked\r\n\r\n",
			"4\r\nfirs\r\n", "5\r\nt and\r\n5\r\n last\r\n", "0\r\nX-Last: z\r\n\r\n",
		} {
			_, _ = io.WriteString(conn, piece)
		}
	})
	req, err := http.NewRequest(http.MethodPut, "http://localhost/v0.4/traces",
		strings.NewReader(string(trace())))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/msgpack")
	resp, err := p.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || string(text) != "first and last" || resp.StatusCode != 203 {
		t.Errorf("status %d, body %q: %v", resp.StatusCode, text, err)
	}
	if got := fmt.Sprint(resp.Header["X-Many"]); got != "[a b]" || resp.Header.Get("Keep-Alive") != "" {
		t.Errorf("headers %v", resp.Header)
	}
}
