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
	"unicode/utf8"

	"github.com/spanstatsd/spanstatsd/internal/status"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
)

// controls matches everything except lines of text.
var controls = regexp.MustCompile(`[^\P{C}\n]`)

// TestStatus_OtherServer: the server may not be a daemon, or may require a password.
func TestStatus_OtherServer(t *testing.T) {
	answer := func(code int, body string) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if user, password, _ := r.BasicAuth(); user == "operator" && password == "secret" {
				code, body = http.StatusOK, `{"schema": 2, "started": "2026-01-01T00:00:00Z"}`
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
		{answer(http.StatusNotFound, "no"), "the address of a spanstatsd", exitUnreachable},
		{answer(http.StatusOK, "<html>"), "the address of a spanstatsd", exitUnreachable},
		{answer(http.StatusOK, "{}"), "the address of a spanstatsd", exitUnreachable},
		{answer(http.StatusOK, `{"schema": 99}`), "schema 99", exitFailure},
		{answer(http.StatusOK, `{"schema": 1}`), "schema 1", exitFailure},
		{answer(http.StatusMisdirectedRequest, "x\nok"), "rejects the host name", exitFailure},
		{locked, "requires a password", exitFailure},
		{strings.Replace(locked, "://", "://operator:secret@", 1), "spanstatsd", 0},
		{"ftp://x", "--url", exitUsage},
	} {
		cmd := program(t, "status", "--url", test.url)
		out, _ := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != test.code || !strings.Contains(string(out), test.says) ||
			strings.Contains(string(out), "secret") {
			t.Errorf("%s: exit code %d, %s", test.url, cmd.ProcessState.ExitCode(), out)
		}
	}
}

// TestStatus_LocalDaemonAddress: the address for connecting is derived from the listen address.
func TestStatus_LocalDaemonAddress(t *testing.T) {
	for listens, want := range map[string]string{
		"": "127.0.0.1:9126", ":80": "127.0.0.1:80", "0.0.0.0:7": "127.0.0.1:7", "[::]:7": "127.0.0.1:7",
		"10.0.0.1:7": "10.0.0.1:7",
	} {
		if got := localDaemon(listens); got != want {
			t.Errorf("%q: %q, want %q", listens, got, want)
		}
	}
}

// TestStatus_HostileResponse: the error quotes the response of a server that is not a daemon, without the
// control sequences in it.
func TestStatus_HostileResponse(t *testing.T) {
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
		t.Errorf("output: %q", out)
	}
}

// TestStatus_Watch: --watch continues until it is interrupted, even if the daemon is unreachable for a
// moment.
func TestStatus_Watch(t *testing.T) {
	var looks atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := looks.Add(1)
		if n == 2 {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		status := status.Status{
			Schema: status.StatusSchema, Process: status.Process{Started: time.Unix(1, 0)}, At: time.Unix(int64(100+n), 0),
		}
		status.Accounting.Received = uint64(1000 * n)
		_ = json.NewEncoder(w).Encode(status)
	}))
	defer server.Close()
	cmd := program(t, "status", "--watch", "--interval", "200ms", "--url", server.URL)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
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
	for _, says := range []string{
		`received +1,000\n`, `received +3,000 +1,000/s\n`,
		`received +4,000 +1,000/s\n`,
	} {
		if !regexp.MustCompile(says).Match(out.Bytes()) {
			t.Errorf("no %q in\n%s", says, out.String())
		}
	}
	if !strings.Contains(stderr.String(), "no response") || controls.Match(out.Bytes()) {
		t.Errorf("the gap is logged as %q", stderr.String())
	}
}

// TestStatusJSON_EscapesControlCharacters: the response of a server that is not a daemon can't control the terminal.
func TestStatusJSON_EscapesControlCharacters(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "{\"schema\": 2, \"version\": \"x\u009b2J\u202e\x9b31m\"}")
	}))
	defer server.Close()
	out, err := program(t, "status", "--json", "--url", server.URL).Output()
	if err != nil || controls.Match(out) || !utf8.Valid(out) || !json.Valid(out) {
		t.Errorf("%v, %q", err, out)
	}
}
