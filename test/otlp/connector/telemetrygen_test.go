package connector

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTelemetrygen checks that the daemon counts each span of the load generator that OpenTelemetry publishes, over
// gRPC and over HTTP, and accepts its metrics and logs.
func TestTelemetrygen(t *testing.T) {
	generator := filepath.Join(t.TempDir(), "telemetrygen")
	build := exec.Command("go", "build", "-o", generator,
		"github.com/open-telemetry/opentelemetry-collector-contrib/cmd/telemetrygen")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build telemetrygen: %v, %s", err, out)
	}
	d := startDaemon(t)
	generate := func(args ...string) {
		t.Helper()
		command := exec.Command(generator, append(args, "--otlp-endpoint", d.address, "--otlp-insecure",
			"--service", "shop", "--rate", "0")...)
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("telemetrygen %v: %v, %s", args, err, out)
		}
	}
	// 200 traces of a parent and two children each
	generate("traces", "--traces", "100", "--child-spans", "2")
	generate("traces", "--traces", "100", "--child-spans", "2", "--otlp-http", "--status-code", "Error")
	for _, transport := range [][]string{nil, {"--otlp-http"}} {
		generate(append([]string{"metrics", "--metrics", "10"}, transport...)...)
		generate(append([]string{"logs", "--logs", "10"}, transport...)...)
	}
	calls, failed := int64(0), int64(0)
	for name, s := range d.stop(600) {
		if !strings.Contains(name, "shop") {
			t.Errorf("a series of another service: %s", name)
		}
		calls += s.calls
		if strings.Contains(name, "ERROR") {
			failed += s.calls
		}
	}
	if calls != 600 || failed != 300 {
		t.Errorf("%d spans, %d of them failed, are in the series of 600 spans, 300 failed", calls, failed)
	}
}
