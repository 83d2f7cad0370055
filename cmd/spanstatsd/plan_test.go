package main

import (
	"net/http"
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
