package main

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/export/dump"
)

// What can't be decoded is named by its place, and nothing in it reaches the
// terminal as it is.
func TestUndecodableDumpIsPrinted(t *testing.T) {
	var out bytes.Buffer
	err := printRefusal(&out, &dump.Refusal{
		Time: time.Unix(0, 0), Agent: "unix:///a", Spans: 1, Status: "400 Bad Request", Message: "\x1b[2J",
		Sent: http.Header{"X": {"\x1b[2J"}}, Body: []byte("\x81\xa5Stats\x91\xc0"),
	})
	if err != nil || !strings.Contains(out.String(), "can't be decoded: decode payload: Stats: [0]: a nil "+
		"element") || strings.Contains(out.String(), "\x1b") {
		t.Errorf("%v\n%q", err, out.String())
	}
}

func TestUnusableDumps(t *testing.T) {
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args string
		code int
		says string
	}{
		{"dump", 2, "accepts 1 arg(s)"},
		{"dump a b", 2, "accepts 1 arg(s)"},
		{"dump /nowhere/at/all", 1, "no such file"},
		{"dump " + other, 1, "--debug-dir"},
		{"run --debug-dir=/nowhere/at/all", 2, "debug-dir"},
	} {
		cmd := program(t, strings.Fields(test.args)...)
		out, _ := cmd.CombinedOutput() // the code says it
		if code := cmd.ProcessState.ExitCode(); code != test.code ||
			!strings.Contains(string(out), test.says) {
			t.Errorf("%s: code %d, %s; want %d and %q", test.args, code, out, test.code, test.says)
		}
	}
}
