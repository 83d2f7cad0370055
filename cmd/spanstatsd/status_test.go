package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/eventually"
	"github.com/spanstatsd/spanstatsd/internal/flush"
	"github.com/spanstatsd/spanstatsd/internal/health"
	"github.com/spanstatsd/spanstatsd/internal/ingest"
	"github.com/spanstatsd/spanstatsd/internal/shown"
)

// controls is everything but lines of text.
var controls = regexp.MustCompile(`[^\P{C}\n]`)

// TestStatusRefusesOthers: what answers may be no daemon, or ask for a password.
func TestStatusRefusesOthers(t *testing.T) {
	answer := func(code int, body string) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if user, password, _ := r.BasicAuth(); user == "operator" && password == "secret" {
				code, body = http.StatusOK, `{"schema": 1, "started": "2026-01-01T00:00:00Z"}`
			}
			w.WriteHeader(code)
			_, _ = w.Write([]byte(body))
		}))
		t.Cleanup(server.Close)
		return server.URL
	}
	locked := answer(http.StatusUnauthorized, "")
	for _, test := range []struct {
		url, says string
		code      int
	}{
		{answer(http.StatusNotFound, "no"), "is this a spanstatsd", exitUnreachable},
		{answer(http.StatusOK, "<html>"), "is this a spanstatsd", exitUnreachable},
		{answer(http.StatusOK, "{}"), "is this a spanstatsd", exitUnreachable},
		{answer(http.StatusOK, `{"schema": 99}`), "schema 99", exitFailure},
		{locked, "asks for a password", exitFailure},
		{strings.Replace(locked, "://", "://operator:secret@", 1), "spanstatsd", 0},
		{"ftp://x", "--url", exitUsage},
	} {
		cmd := program(t, "status", "--url", test.url)
		out, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != test.code || !strings.Contains(string(out), test.says) || strings.Contains(string(out), "secret") {
			t.Errorf("%s: exit code %d, %s", test.url, cmd.ProcessState.ExitCode(), out)
		}
	}
}

// TestStatusTextIsSafe gives every text from outside a command for terminals.
func TestStatusTextIsSafe(t *testing.T) {
	const hostile = "\x1b[2J\x1b]0;owned\a\u202e\u009b31m\r\nx\x00"
	now := time.Now()
	s := &health.Status{
		Schema: 1, At: now, Started: now.Add(-time.Hour), Version: hostile, NotReady: hostile,
		Books:     health.Books{Received: 3, Dropped: map[string]uint64{hostile: 3}},
		Collapsed: map[string]uint64{hostile: 1},
		Drainers:  []health.Drainer{{Ring: health.Ring{Slots: 8, Used: 9, HighWater: 12}}},
		Agent:     health.Agent{URL: hostile, Version: hostile},
		Flushes:   []flush.Flush{{Said: hostile, Outcomes: map[flush.Result]int{flush.ResultAccepted: 1}}},
		Busiest: flush.Busiest{
			Rows:  []flush.BusyKey{{Service: hostile, Operation: hostile, Resource: hostile, Hits: 1, Latency: []uint64{0, 4, 1}}},
			Curve: flush.CurveAxis{Columns: 3},
		},
		Tracers: []ingest.Tracer{{Service: hostile, Env: hostile, Lang: hostile}},
	}
	text := renderStatus(s, nil, false)
	if found := controls.FindString(text); found != "" {
		t.Errorf("the text holds %q:\n%q", found, text)
	}
	if !strings.Contains(text, `\x1b[2J`) {
		t.Errorf("the labels are not shown:\n%s", text)
	}
}

// TestStatusSaysWhatTheAgentDoes: an agent that does not take what waits for it is never
// shown as well, though nothing is lost yet.
func TestStatusSaysWhatTheAgentDoes(t *testing.T) {
	for want, agent := range map[string]health.Agent{
		"the agent answers, and does not take payloads": {Reachable: true, Stats: true, State: flush.Answers},
		"the agent does not answer":                     {Stats: true, State: flush.Silent},
		"the agent takes no statistics":                 {Reachable: true, State: flush.Answers},
		"Every span is accounted for":                   {Reachable: true, Stats: true, State: flush.Takes},
	} {
		text := renderStatus(&health.Status{
			Agent: agent, Books: health.Books{
				Received: 7, Aggregated: 7, Balanced: true,
				DeliveryBooks: health.DeliveryBooks{Held: 7, HeldInPayloads: 7},
			},
			Retry: health.Retry{Payloads: 1, Bytes: 100, MaxBytes: 1000, OldestSeconds: 61, MaxSeconds: 120},
		}, nil, false)
		if !strings.Contains(text, want) || strings.Contains(text, "accounted for") != (agent.State == flush.Takes) ||
			!strings.Contains(text, "the oldest for 1m 1s of 2m 0s") {
			t.Errorf("want %q:\n%s", want, text)
		}
	}
}

// TestStatusSaysWhatEachDestinationDoes: one that is away beside an agent that is well is
// never overlooked, and without an agent there is no word of one.
func TestStatusSaysWhatEachDestinationDoes(t *testing.T) {
	status := health.Status{
		Books: health.Books{Received: 7, Aggregated: 7, Balanced: true, DeliveryBooks: health.DeliveryBooks{Flushed: 7}},
		Agent: health.Agent{URL: "unix:///agent", Reachable: true, Stats: true, State: flush.Takes},
		Destinations: []health.Destination{
			{Name: "agent", State: flush.Takes, Books: health.DeliveryBooks{Flushed: 7}},
			{
				Name: "otlp", URL: "http://collector:4318", State: flush.Silent, Books: health.DeliveryBooks{Held: 7, HeldInPayloads: 7},
				Retry: health.Retry{Payloads: 1, Bytes: 100, MaxBytes: 1000, OldestSeconds: 61, MaxSeconds: 120},
			},
		},
	}
	text := renderStatus(&status, nil, false)
	for _, want := range []string{
		"No span is lost yet, but the destination otlp does not answer.", "Agent  unix:///agent",
		"Destination otlp  http://collector:4318  does not answer", "0 flushed, 7 held, 0 unsent", "the oldest for 1m 1s of 2m 0s",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q:\n%s", want, text)
		}
	}
	status.Agent, status.Destinations = health.Agent{State: health.AgentOff}, status.Destinations[1:]
	lost := &status.Destinations[0].Books
	lost.Held, lost.Unsent, lost.UnsentBy = 0, 7, map[string]uint64{"expired": 7}
	if text = renderStatus(&status, nil, false); strings.Contains(strings.ToLower(text), "agent") ||
		!strings.Contains(text, "7 of 7 spans are lost") || !strings.Contains(text, "7 unsent  expired 7") {
		t.Errorf("without an agent:\n%s", text)
	}
}

// TestStatusSaysThatTheDaemonBeforeWasKilled: the books begin anew, and do not show it.
func TestStatusSaysThatTheDaemonBeforeWasKilled(t *testing.T) {
	for died, want := range map[int]string{0: "", 1: "The daemon before this one was killed", 2: "2 daemons before this one were killed"} {
		text := renderStatus(&health.Status{Died: died, Books: health.Books{Received: 7, Balanced: true}}, nil, false)
		if strings.Contains(text, "killed") != (died > 0) || !strings.Contains(text, want) {
			t.Errorf("%d daemons died:\n%s", died, text)
		}
	}
}

func TestRates(t *testing.T) {
	started := time.Unix(100, 0)
	at := func(second int64, received uint64, started time.Time) *health.Status {
		return &health.Status{At: time.Unix(second, 0), Started: started, Books: health.Books{Received: received}}
	}
	received := func(s *health.Status) uint64 { return s.Books.Received }
	first := at(200, 1000, started)
	if rate, known := rateSince(first, at(204, 3000, started), received); !known || rate != 500 {
		t.Errorf("%v, %t", rate, known)
	}
	for what, last := range map[string]*health.Status{
		"none": nil, "an empty one": {}, "another daemon": at(200, 1, started.Add(time.Second)), "the same moment": at(204, 1, started),
	} {
		if rate, known := rateSince(last, at(204, 3000, started), received); known {
			t.Errorf("%s: %v", what, rate)
		}
	}
}

func TestFigures(t *testing.T) {
	for got, want := range map[string]string{
		count(0): "0", count(999): "999", count(1000): "1,000", count(uint64(1234567)): "1,234,567", count(-1234): "-1,234",
		perSecond(0): "0/s", perSecond(0.25): "0.2/s", perSecond(1234.5): "1,235/s",
		bytesText(1023): "1023 B", bytesText(16 << 20): "16.0 MiB",
		latency(0): "0", latency(5e-9): "5 ns", latency(1.5e-6): "1.50 µs", latency(.0123): "12.3 ms", latency(123): "123 s",
		ago(59 * time.Second): "59s", ago(3601 * time.Second): "1h 0m", ago(50 * time.Hour): "2d 2h",
		bar(0, 0, 4): "····", bar(.5, 1, 4): "██·▏", bar(2, 2, 4): "████",
		sparkline([]uint64{0, 1, 4, 8}): " ▂▅█",
		cut("abcdef", 3):                "abc", cut("\x1b[1mab\x1b[0mcd", 1): "\x1b[1ma\x1b[0m", cut("äöü", 2): "äö",
		clip("abcdef", 4): "abc…", shown.Text("a\tb"): `a\tb`, shown.Text("naïve ✓"): "naïve ✓",
		localDaemon(""): "127.0.0.1:9126", localDaemon(":80"): "127.0.0.1:80", localDaemon("0.0.0.0:7"): "127.0.0.1:7",
		localDaemon("[::]:7"): "127.0.0.1:7", localDaemon("10.0.0.1:7"): "10.0.0.1:7",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestPaint colours terminals alone.
func TestPaint(t *testing.T) {
	if newPaint(&strings.Builder{}) {
		t.Error("what is no terminal would be coloured")
	}
	if got := paint(true).good("x"); got != "\x1b[32mx\x1b[0m" {
		t.Errorf("%q", got)
	}
	if got := paint(false).bad("x"); got != "x" {
		t.Errorf("%q", got)
	}
}

// TestHostileAnswer has something that is no daemon answer with commands for a
// terminal, where an error quotes it.
func TestHostileAnswer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 4096))
			_, _ = io.WriteString(conn, "HTTP/1.1 500 \x1b[2J\x1b]0;owned\a\r\nContent-Length: 0\r\n\r\n")
			conn.Close()
		}
	}()
	out, _ := program(t, "status", "--url", "http://"+listener.Addr().String()).CombinedOutput()
	if controls.Match(out) || !strings.Contains(string(out), `\x1b[2J`) {
		t.Errorf("it says %q", out)
	}
}

// TestWatch looks until it is interrupted, and outlives a daemon that is away for
// a moment.
func TestWatch(t *testing.T) {
	var looks atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := looks.Add(1)
		if n == 2 {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		status := health.Status{Schema: 1, Started: time.Unix(1, 0), At: time.Unix(int64(100+n), 0)}
		status.Books.Received = uint64(1000 * n)
		_ = json.NewEncoder(w).Encode(status)
	}))
	defer server.Close()
	cmd := program(t, "status", "--watch", "--interval", "200ms", "--url", server.URL)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "five looks at the status", func() bool { return looks.Load() >= 5 })
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("an interrupted watch: %v", err)
	}
	for _, says := range []string{`received +1,000\n`, `received +3,000 +1,000/s\n`, `received +4,000 +1,000/s\n`} {
		if !regexp.MustCompile(says).Match(out.Bytes()) {
			t.Errorf("no %q in\n%s", says, out.String())
		}
	}
	if !strings.Contains(said.String(), "no answer") || controls.Match(out.Bytes()) {
		t.Errorf("the gap is told as %q", said.String())
	}
}
