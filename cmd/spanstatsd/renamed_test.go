package main

import (
	"strings"
	"testing"
)

// A release accepts the old names of its renamed flags and variables, so that an upgrade does not
// stop a daemon. The new name takes precedence, and the log names it.
func TestRenamedFlag_OldNameWarns(t *testing.T) {
	for _, c := range []struct{ flags, want, warning string }{
		{"--otlp-reading=datadog", "datadog", "--otlp-semantics"},
		{"SPANSTATSD_OTLP_READING=datadog", "datadog", "--otlp-semantics"},
		{"SPANSTATSD_OTLP_READING=otel SPANSTATSD_OTLP_SEMANTICS=datadog", "datadog", "--otlp-semantics"},
		{"SPANSTATSD_OTLP_READING=otel --otlp-semantics=datadog", "datadog", "--otlp-semantics"},
		{"--otlp-semantics=datadog", "datadog", ""},
	} {
		cmd := program(t, "config")
		for text := range strings.FieldsSeq(c.flags) {
			if strings.HasPrefix(text, "-") {
				cmd.Args = append(cmd.Args, text)
			} else {
				cmd.Env = append(cmd.Env, text)
			}
		}
		var warnings strings.Builder
		cmd.Stderr = &warnings
		out, err := cmd.Output()
		if err != nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%q: %v: %s%s", c.flags, err, out, warnings.String())
		}
		if got := warnings.String(); strings.Count(got, "\n") != min(1, len(c.warning)) ||
			!strings.Contains(got, c.warning) {
			t.Errorf("%q: the log has %q, want one line with %q", c.flags, got, c.warning)
		}
	}
	cmd := program(t, "status", "--timeout=1ns", "--addr=127.0.0.1:1")
	cmd.Env = append(cmd.Env, "SPANSTATSD_MAX_KEY_BYTES_IN_ALL=8MiB")
	if out, _ := cmd.CombinedOutput(); strings.Contains(string(out), "SPANSTATSD") {
		t.Errorf("status rejects a variable of run: %s", out)
	}
}
