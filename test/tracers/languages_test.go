//go:build languages

package tracers

import (
	"maps"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// These run tracers of other languages, as languages.sh has installed them: `make
// test-tracers`. They are no part of a change's tests, which install nothing.

func TestPython(t *testing.T) {
	testLanguage(t, exec.Command(os.Getenv("TRACERS_DIR")+"/python/bin/python", "apps/shop.py"))
}

func TestNode(t *testing.T) {
	command := exec.Command("node", "apps/shop.js")
	command.Env = append(command.Environ(), "NODE_PATH="+os.Getenv("TRACERS_DIR")+"/node/node_modules")
	testLanguage(t, command)
}

// testLanguage runs an application whose tracer leaves its statistics to the agent.
func testLanguage(t *testing.T, app *exec.Cmd) {
	for _, version := range []string{"v0.4", "v0.5"} {
		t.Run(version, func(t *testing.T) {
			again := exec.Command(app.Path, app.Args[1:]...)
			again.Env = app.Env
			through, direct := startAgent(t), startAgent(t)
			socket, stop := startDaemon(t, through.socket, false)
			f := startFork(t, socket, direct.socket)
			again.Env = append(again.Environ(),
				"DD_TRACE_AGENT_URL=unix://"+f.socket, "DD_SERVICE=shop", "DD_ENV=test", "DD_VERSION=1.2", "DD_TRACE_API_VERSION="+version,
				"DD_TRACE_AGENT_PROTOCOL_VERSION="+strings.TrimPrefix(version, "v"), "DD_TRACE_STATS_COMPUTATION_ENABLED=false",
				"DD_INSTRUMENTATION_TELEMETRY_ENABLED=false", "DD_REMOTE_CONFIGURATION_ENABLED=false")
			said, err := again.CombinedOutput()
			if err != nil || strings.Contains(strings.ToLower(string(said)), "error") {
				t.Errorf("the application ended with %v: %s", err, said)
			}
			time.Sleep(100 * time.Millisecond) // the last answers of the fork
			books, _ := stop()
			through.stop()
			direct.stop()
			ours, spans := through.received.groups(t)
			theirs, counted := direct.computed.groups(t)
			left, _ := through.computed.groups(t)
			if spans < 4*50*2 || spans != counted || !maps.Equal(ours, theirs) || len(left) != 0 || float64(books.Flushed) != spans {
				t.Errorf("%v spans through the daemon, %v without it, the books %+v\n%v\n%v\n%v", spans, counted, books, ours, theirs, left)
			}
			if got, want := through.traces.spans.Load(), direct.traces.spans.Load(); got != want || got != 4*50*3 {
				t.Errorf("%d spans of traces reached the agent through the daemon, %d without it", got, want)
			}
			t.Logf("%s: %v spans in %d groups", f, spans, len(ours))
		})
	}
}
