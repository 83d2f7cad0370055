package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDump_Invalid(t *testing.T) {
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
		out, _ := cmd.CombinedOutput() // the exit code contains the result
		if code := cmd.ProcessState.ExitCode(); code != test.code ||
			!strings.Contains(string(out), test.says) {
			t.Errorf("%s: code %d, %s; want %d and %q", test.args, code, out, test.code, test.says)
		}
	}
}
