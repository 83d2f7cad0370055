package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPlan_ProposesFlags checks the output of the command for a daemon with and without an overflow, and its
// exit code if the flags do not fit in the memory limit.
func TestPlan_ProposesFlags(t *testing.T) {
	const overflow = `{"schema": 2, "aggregates": {"max": 8192}, "overflow": {"keys": 500, "labels": [
		{"service": "shop", "label": "tag:tenant.id", "budget": 200, "wanted": 500, "collapsed": []}]}, "memory": `
	for name, test := range map[string]struct {
		status string
		want   []string
		code   int
	}{
		"healthy": {`{"schema": 2}`, []string{"no label has exceeded its budget"}, 0},
		"overflow": {overflow + `{"total_bytes": 1048576}}`, []string{
			"`tenant.id` of service `shop` wanted about 500 values, its budget is 200: raise it to 1100, or drop the dimension",
			"\nspanstatsd run --cardinality-limit=tag:tenant.id=1100\n", "1.0 MiB; no memory limit is set",
		}, 0},
		"too large": {
			overflow + `{"total_bytes": 2097152, "limit_bytes": 1048576}}`,
			[]string{"the memory limit is 1.0 MiB"},
			exitFailure,
		},
		"hostile name": {
			`{"schema": 2, "aggregates": {"max": 8192}, "overflow": {"keys": 1, "labels": [` +
				`{"label": "tag:$(reboot)\u001b'", "wanted": 5}]}}`,
			[]string{`'--cardinality-limit=tag:$(reboot)\x1b'\''=11'`},
			0,
		},
	} {
		cmd := program(t, "plan", "--url", respond(t, http.StatusOK, test.status))
		out, _ := cmd.Output()
		for _, want := range test.want {
			if !strings.Contains(string(out), want) {
				t.Errorf("%s: the output does not contain %q:\n%s", name, want, out)
			}
		}
		if code := cmd.ProcessState.ExitCode(); code != test.code {
			t.Errorf("%s: exit code %d instead of %d", name, code, test.code)
		}
	}
}

// TestPlanFile_ProposesFlags checks the output of the command for a recording, and that with the proposed flags no label
// exceeds its budget.
func TestPlanFile_ProposesFlags(t *testing.T) {
	var lines strings.Builder
	for n := range 1000 {
		fmt.Fprintf(&lines, `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"%032x","spanId":"%016x","name":"checkout",`+
			`"kind":2,"endTimeUnixNano":"1795906580000000000","attributes":[{"key":"tenant.id","value":{"stringValue":"t%d"}}]}]}]}]}`+
			"\n", n+1, n+1, n)
	}
	file := filepath.Join(t.TempDir(), "traces.jsonl")
	if err := os.WriteFile(file, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	plan := func(flags ...string) string {
		t.Helper()
		args := append([]string{"plan", "file", file, "--prometheus-dimensions", "tenant.id"}, flags...)
		out, err := program(t, args...).Output()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	out := plan("--cardinality-limit", "tag:tenant.id=200")
	_, proposal, _ := strings.Cut(out, "\nspanstatsd run ")
	proposed, _, _ := strings.Cut(proposal, "\n")
	if !strings.Contains(out, "`tenant.id` of service `") || !strings.HasPrefix(proposed, "--cardinality-limit=tag:tenant.id=") {
		t.Fatalf("the output is:\n%s", out)
	}
	if out := plan(strings.Fields(proposed)...); out != "no label has exceeded its budget\n" {
		t.Errorf("the output with %s is:\n%s", proposed, out)
	}
	for _, flags := range [][]string{
		{"--otlp-semantics", "datadog"}, {"--flush-interval", "0"}, {"--max-aggregates", "0"}, {"--cardinality-limit", "resource=0"},
	} {
		cmd := program(t, append([]string{"plan", "file", file}, flags...)...)
		if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != exitUsage {
			t.Errorf("%v: exit code %d: %s", flags, cmd.ProcessState.ExitCode(), out)
		}
	}
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := program(t, "plan", "file", empty).Run(); err == nil {
		t.Error("a file without spans has a plan")
	}
}
