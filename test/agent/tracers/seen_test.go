//go:build languages

package tracers

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// seen is the view of a TraceInterceptor on one span, as written by apps/java/Seen.java.
type seen struct {
	Row, Call       int
	Whole           bool `json:"whole"`      // its trace was shown with its local root
	LocalRoot       bool `json:"local_root"` // the span is that one
	Start, Duration int64
	Error           bool
	Priority        *int
	Thread          string
	Service         string
	RootService     string `json:"root_service"`
	Operation       string
	Resource, Type  string
	Tags            map[string]string
}

// run is a run of the application under dd-java-agent with that interceptor: the intercepted spans, and
// the spans sent.
type run struct {
	seen []seen
	sent sent
}

// interceptorRun runs the application once. does is the interceptor's action on every second trace.
func interceptorRun(t *testing.T, does string, computes bool) run {
	t.Helper()
	agent := startAgent(t)
	tap := startTap(t, agent.Socket)
	shop, file := javaShop("measured"), filepath.Join(t.TempDir(), "seen.jsonl")
	command := shop.start(t, setting{protocol: "0.4", computes: computes, drop: true}, tap.socket)
	command.Env = append(command.Env, "SEEN="+file, "SEEN_DOES="+does,
		"DD_TRACE_PEER_SERVICE_DEFAULTS_ENABLED=true")
	if said, err := command.CombinedOutput(); err != nil || complains(string(said)) {
		t.Errorf("the application ended with %v: %s", err, said)
	}
	r := run{sent: tap.stop(t)}
	from, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	for lines := bufio.NewScanner(from); lines.Scan(); {
		var s seen
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			t.Fatalf("%v: %s", err, lines.Bytes())
		}
		r.seen = append(r.seen, s)
	}
	if len(r.seen) == 0 {
		t.Fatal("the interceptor was shown nothing")
	}
	return r
}

// calls returns the number of intercepted traces or trace parts.
func (r run) calls() (all int) {
	for _, s := range r.seen {
		all = max(all, s.Call)
	}
	return all
}

func of(part, all int) string { return fmt.Sprintf("%d of %d", part, all) }
