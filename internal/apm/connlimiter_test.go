package apm

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/eventually"
)

// newConn is a connection of a process that is not admitted yet.
func newConn(l *connLimiter, pid int32) *conn {
	ours, _ := net.Pipe()
	return &conn{Conn: ours, limiter: l, pid: pid}
}

// TestAnIdleConnectionGivesWay: a process has half of the connections at most, the one that
// has been idle longest gives way, and where none is idle the newest is rejected.
func TestAnIdleConnectionGivesWay(t *testing.T) {
	l := &connLimiter{max: 4, conns: map[*conn]struct{}{}}
	add := func(pid int32, want bool) *conn {
		t.Helper()
		c := newConn(l, pid)
		if got := l.add(c); got != want {
			t.Errorf("process %d, with %d connections: admitted %v", pid, len(l.conns), got)
		}
		return c
	}
	isOpen := func(c *conn) bool { _, ok := l.conns[c]; return ok }
	first, second := add(1, true), add(1, true)
	add(1, false) // it has its half
	l.connState(second, http.StateIdle)
	third := add(1, true)
	if isOpen(second) || !isOpen(first) {
		t.Error("it was not the idle one that gave way")
	}
	stranger := add(0, true)
	other := add(0, true) // nobody knows whether they are of one process
	add(0, false)
	l.connState(third, http.StateIdle)
	time.Sleep(time.Millisecond)
	l.connState(stranger, http.StateIdle)
	add(2, true)
	if isOpen(third) || !isOpen(stranger) || !isOpen(other) {
		t.Error("it was not the one that was idle for longest that gave way")
	}
	l.connState(stranger, http.StateActive)
	add(2, false)
	other.Close()
	other.Close() // which some do twice
	add(2, true)
	if n, last := l.count(); n != 4 || last.IsZero() {
		t.Errorf("%d are open, the last was heard at %v", n, last)
	}
}

// TestOneConnectionTooMany: it is told so before it has said anything, and those inside
// notice nothing.
func TestOneConnectionTooMany(t *testing.T) {
	s := serveOnSocket(t, func(c *Config) { c.MaxConnections = 2 }) // and this process has one of them
	inside := s.dial(t)
	const request = "POST /telemetry/x HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n"
	if _, err := io.WriteString(inside, request); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "a connection is refused", func() bool { return s.counters.other.Load() > 0 })
	answer, _ := io.ReadAll(s.dial(t))
	if !strings.HasPrefix(string(answer), "HTTP/1.1 503 ") || s.Stats().Refused != 1 || s.Stats().Connections != 1 {
		t.Errorf("one too many got %q, the statistics are %+v", answer, s.Stats())
	}
	inside.Close()
	eventually.True(t, "all connections are closed", func() bool { return s.Stats().Connections == 0 })
	if _, err := io.WriteString(s.dial(t), request); err != nil {
		t.Error(err)
	}
	eventually.True(t, "two connections are refused", func() bool { return s.counters.other.Load() >= 2 })
}

// TestHeadersOfManyLines: however its bytes are cut, a header is counted to its end and
// nothing behind it, and each request has its own.
func TestHeadersOfManyLines(t *testing.T) {
	header := func(lines int, end string) string {
		return "GET / HTTP/1.1" + end + strings.Repeat("a: b"+end, lines-1) + end
	}
	behind := strings.Repeat("\n", 2*maxHeaderLines)
	for name, test := range map[string]struct {
		bytes string
		fits  bool
	}{
		"as many as fit":           {header(maxHeaderLines, "\r\n") + behind, true},
		"one more":                 {header(maxHeaderLines+1, "\r\n"), false},
		"as many, bare":            {header(maxHeaderLines, "\n") + behind, true},
		"one more, bare":           {header(maxHeaderLines+1, "\n"), false},
		"none that is ended":       {strings.Repeat("a\r\n", maxHeaderLines), true},
		"lines of nothing yet":     {"GET / HTTP/1.1\r", true},
		"one more, behind nothing": {"\r\n\r\n" + header(maxHeaderLines+1, "\r\n"), false},
	} {
		for _, piece := range []int{1, 3, 4096} {
			var h headerLimit
			h.reset()
			fits := true
			for rest := test.bytes; rest != "" && fits && !h.done.Load(); {
				n := min(piece, len(rest))
				fits = h.count([]byte(rest[:n]))
				rest = rest[n:]
			}
			if fits != test.fits {
				t.Errorf("%s, in pieces of %d: %v", name, piece, fits)
			}
		}
	}
}

// TestAnOriginThatNobodyUsesExpires closes its publisher.
func TestAnOriginThatNobodyUsesExpires(t *testing.T) {
	h := newHarness(t)
	now := time.Now()
	for _, service := range []string{"a", "b", "c"} {
		h.publishers.get(origin(service), now)
		now = now.Add(publisherTimeout / 2)
	}
	if h.publishers.expire(now); h.publishers.count() != 1 {
		t.Errorf("%d origins are kept", h.publishers.count())
	}
	if h.publishers.expire(now.Add(publisherTimeout)); h.publishers.count() != 0 {
		t.Errorf("%d origins are kept", h.publishers.count())
	}
}
