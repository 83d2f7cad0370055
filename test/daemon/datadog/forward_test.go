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
func before(t *testing.T, rude func(net.Conn, *bufio.Reader)) *proxied {
	t.Helper()
	good := startAgent(t)
	socket, _ := rudeAgent(t, good, rude)
	return start(t, good, func(c *daemon.Config) {
		c.Agent.URL = agent.URL{Network: "unix", Address: socket}
	})
}

// receiveWhole reads a complete request.
func receiveWhole(t *testing.T, from *bufio.Reader) {
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
			t.Errorf("try %d was answered %s, want %s", i, got, want)
		}
	}
	p.free()
	if books := p.stop(); books.Received != 1 || books.Flushed != 1 {
		t.Errorf("the books: %+v", books)
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
			t.Errorf("it got %d of %d bytes: %v", len(got), len(body), err)
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 202 x\r\nContent-Length: 0\r\n\r\n")
	})
	if got := p.attempt(body); got != "202" {
		t.Errorf("answered %s", got)
	}
}

// slowWrite is the time after which a write that is still blocked makes the daemon check for an early
// response.
const slowWrite = 20 * time.Millisecond

// TestForward_ClosedConnectionIsNotReused checks that the daemon closes a connection with unsolicited
// data from the agent, and uses neither it nor a connection closed by the agent for another request.
func TestForward_ClosedConnectionIsNotReused(t *testing.T) {
	const answer = "HTTP/1.1 202 x\r\nContent-Length: 0\r\n\r\n"
	for name, test := range map[string]struct {
		says  string
		later string // sent once the tracer has its response
		stays bool
	}{
		"an answer afterwards": {says: answer, later: answer, stays: true},
		"ended":                {says: answer},
		"ended, as it says": {says: strings.Replace(answer, "\r\n\r\n", "\r\nConnection: close\r\n\r\n",
			1), stays: true},
		"two answers":            {says: answer + answer, stays: true},
		"an answer without end":  {says: "HTTP/1.0 202 x\r\n\r\nto the end of the connection"},
		"more than its length":   {says: answer + "more", stays: true},
		"an answer to the chunk": {says: "HTTP/1.1 202 x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n" + answer, stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			answered, over, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
			defer close(ended)
			p := before(t, func(conn net.Conn, from *bufio.Reader) {
				receiveWhole(t, from)
				_, _ = io.WriteString(conn, test.says)
				if test.later != "" {
					<-answered
					_, _ = io.WriteString(conn, test.later)
				}
				if test.stays {
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
					t.Errorf("request %d was answered %s, want %s", i, got, want)
				}
				if i == 0 {
					close(answered)
				}
				<-over
			}
			if books := p.stop(); books.Received != 3 || books.Flushed != 3 {
				t.Errorf("the books: %+v", books)
			}
		})
	}
}

// TestForward_ResponseIsComplete checks that header fields, except those of the connection, and chunks
// are preserved.
func TestForward_ResponseIsComplete(t *testing.T) {
	p := before(t, func(conn net.Conn, from *bufio.Reader) {
		receiveWhole(t, from)
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
		t.Errorf("answered %d %q: %v", resp.StatusCode, text, err)
	}
	if got := fmt.Sprint(resp.Header["X-Many"]); got != "[a b]" || resp.Header.Get("Keep-Alive") != "" {
		t.Errorf("it came with %v", resp.Header)
	}
}
