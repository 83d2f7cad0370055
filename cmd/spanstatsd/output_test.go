package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// TestOutput_WriteError: if the output can't be written, each command fails, with an error
// about the output.
func TestOutput_WriteError(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	for _, line := range []string{
		"version", "help", "run --help", "config", "config --check", "config --json", "completion bash",
	} {
		cmd := program(t, strings.Fields(line)...)
		var stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = full, &stderr
		_ = cmd.Run() // the exit code is checked below
		if code, says := cmd.ProcessState.ExitCode(), stderr.String(); code != exitFailure ||
			!strings.Contains(says, "no space left") || strings.Contains(says, "defect") {
			t.Errorf("%s: exit code %d: %s", line, code, says)
		}
	}
}
