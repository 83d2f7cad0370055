package apm

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// newcomer is a guest of a process, at the door.
func newcomer(c *crowd, pid int32) *guest {
	ours, _ := net.Pipe()
	return &guest{Conn: ours, crowd: c, pid: pid}
}

// TestCrowd: a process has half of the connections at most, an idle one gives way, and
// where none is the newest is refused.
func TestCrowd(t *testing.T) {
	c := &crowd{most: 4, inside: map[*guest]struct{}{}}
	enter := func(pid int32, want bool) *guest {
		t.Helper()
		g := newcomer(c, pid)
		if got := c.enter(g); got != want {
			t.Errorf("process %d, with %d inside: let in %v", pid, len(c.inside), got)
		}
		return g
	}
	inside := func(g *guest) bool { _, ok := c.inside[g]; return ok }
	first, second := enter(1, true), enter(1, true)
	enter(1, false) // it has its half
	c.changed(second, http.StateIdle)
	third := enter(1, true)
	if inside(second) || !inside(first) {
		t.Error("it was not the idle one that gave way")
	}
	stranger := enter(0, true)
	other := enter(0, true) // nobody knows whether they are of one process
	enter(0, false)
	c.changed(third, http.StateIdle)
	time.Sleep(time.Millisecond)
	c.changed(stranger, http.StateIdle)
	enter(2, true)
	if inside(third) || !inside(stranger) || !inside(other) {
		t.Error("it was not the one that gave way that was idle for longest")
	}
	c.changed(stranger, http.StateActive)
	enter(2, false)
	other.Close()
	other.Close() // which some do twice
	enter(2, true)
	if n, last := c.count(); n != 4 || last.IsZero() {
		t.Errorf("%d are inside, the last was heard at %v", n, last)
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
	for s.counters.other.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	answer, _ := io.ReadAll(s.dial(t))
	if !strings.HasPrefix(string(answer), "HTTP/1.1 503 ") || s.Stats().Refused != 1 || s.Stats().Connections != 1 {
		t.Errorf("one too many got %q, the statistics are %+v", answer, s.Stats())
	}
	inside.Close()
	for s.Stats().Connections > 0 {
		time.Sleep(time.Millisecond)
	}
	if _, err := io.WriteString(s.dial(t), request); err != nil {
		t.Error(err)
	}
	for s.counters.other.Load() < 2 {
		time.Sleep(time.Millisecond)
	}
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
			var h headerLines
			h.reset()
			fits := true
			for rest := test.bytes; rest != "" && fits && !h.read.Load(); {
				n := min(piece, len(rest))
				fits = h.take([]byte(rest[:n]))
				rest = rest[n:]
			}
			if fits != test.fits {
				t.Errorf("%s, in pieces of %d: %v", name, piece, fits)
			}
		}
	}
}

// TestForgottenOrigins: what nobody uses for long is not remembered.
func TestForgottenOrigins(t *testing.T) {
	h := newHarness(t)
	now := time.Now()
	for _, service := range []string{"a", "b", "c"} {
		h.publishers.find(origin(service), now)
		now = now.Add(forgetAfter / 2)
	}
	if h.publishers.age(now); h.publishers.count() != 1 {
		t.Errorf("%d origins are remembered", h.publishers.count())
	}
	if h.publishers.age(now.Add(forgetAfter)); h.publishers.count() != 0 {
		t.Errorf("%d origins are remembered", h.publishers.count())
	}
}
