package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/status/doctor"
)

// respond starts a server that gives the same response to every request.
func respond(t *testing.T, code int, body string) (url string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestDoctorJSON_Unavailable: without a status, --json writes a finding with a fix.
func TestDoctorJSON_Unavailable(t *testing.T) {
	const none = "http://127.0.0.1:1" // a port that no test can get by chance
	for name, test := range map[string]struct {
		url, message, fix string
		code              int
	}{
		"401": {
			respond(t, http.StatusUnauthorized, ""), "requires a password", "user:password@", exitFailure,
		},
		"421": {
			respond(t, http.StatusMisdirectedRequest, "x\nok      all: well"), "rejects the host name", "--http-hosts",
			exitFailure,
		},
		"older schema": {respond(t, http.StatusOK, `{"schema": 1}`), "schema 1", "version", exitFailure},
		"newer schema": {respond(t, http.StatusOK, `{"schema": 99}`), "schema 99", "version", exitFailure},
		"not a status": {respond(t, http.StatusOK, "<html>"), "other than a status", "--url", exitUnreachable},
		"not a number": {
			respond(t, http.StatusOK, `{"schema": 2, "late": "x"}`), "invalid status", "--url", exitUnreachable,
		},
		"no daemon": {none, "connection refused", "--http-addr", exitUnreachable},
	} {
		cmd := program(t, "doctor", "--json", "--url", test.url)
		out, _ := cmd.Output()
		var findings doctor.Findings
		if err := json.Unmarshal(out, &findings); err != nil || len(findings) != 1 {
			t.Errorf("%s: %v, %s", name, err, out)
			continue
		}
		one := findings[0]
		if one.Verdict != doctor.Wrong || one.Subject != "status" || !strings.Contains(one.Message, test.message) ||
			!strings.Contains(one.Fix, test.fix) || cmd.ProcessState.ExitCode() != test.code {
			t.Errorf("%s: exit code %d, %+v", name, cmd.ProcessState.ExitCode(), one)
		}
	}
}

// TestDoctor_EscapesHostileStatus: the texts of a status can neither control the terminal nor add lines.
func TestDoctor_EscapesHostileStatus(t *testing.T) {
	const hostile = `"x\nok      accounting: all is well\u001b[2J\u202e"`
	url := respond(t, http.StatusOK, `{"schema": 2, "ready": false, "not_ready": `+hostile+`, "accounting": {"received": 5,
		"balanced": true}, "receivers": {`+hostile+`: {"requests": {"counted": 1}}, "otlp": null},
		"destinations": [{"name": `+hostile+`, "url": `+hostile+`, "state": "unreachable",
		"flushes": [{"last_error": `+hostile+`}]}]}`)
	out, _ := program(t, "doctor", "--url", url).Output()
	if controls.Match(out) {
		t.Errorf("control characters: %q", out)
	}
	if strings.Contains(string(out), "\nok      accounting: all is well") {
		t.Errorf("a name has added a line:\n%s", out)
	}
	if !strings.Contains(string(out), "wrong   accounting: the accounting does not balance: 5 spans received") {
		t.Errorf("the balance is copied, not computed:\n%s", out)
	}
}
