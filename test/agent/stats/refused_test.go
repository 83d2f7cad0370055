package stats

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/DataDog/datadog-agent/pkg/trace/config"
)

// TestRejectedPayload_Saved checks that a payload that the real agent rejects is dropped immediately, with its reason, and saved with the
// agent's response.
func TestRejectedPayload_Saved(t *testing.T) {
	t.Parallel()
	at := here(t)
	o := startOracle(t, at.path("agent"), func(conf *config.AgentConfig) { conf.MaxRequestBytes = 200 })
	d := startDaemon(t, at.path("spans"), "unix://"+o.Socket, "--debug-dir", string(at))
	c := d.tracer(origin)
	publish(t, c, shopSpans(100, "GET /cart"))
	if err := c.Flush(t.Context()); err == nil || !strings.Contains(err.Error(), "400") {
		t.Errorf("result reported to the tracer: %v", err)
	}
	if got := d.unsent("rejected"); got != "100" {
		t.Errorf("%s spans are rejected", got)
	}
	d.stop()
	file := ""
	for _, line := range d.log {
		if name, ok := line["file"].(string); ok {
			file = name
		}
	}
	out, err := exec.Command(program, "dump", file).CombinedOutput()
	for _, text := range []string{
		"400 Bad Request", "read limit reached", "Datadog-Agent-Version: 7.85.1",
		"GET /cart", "hits 100",
	} {
		if err != nil || !strings.Contains(string(out), text) {
			t.Errorf("%v, %q is not in\n%s", err, text, out)
		}
	}
	t.Logf("\n%s", out)
}
