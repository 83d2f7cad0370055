package program

import (
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
	"github.com/spanstatsd/spanstatsd/lab/standin"
)

// A payload that the agent refuses can be inspected later if the daemon is configured to keep it, in a
// given directory or in that for temporary files.
func TestRejectedPayload_SavedAndPrinted(t *testing.T) {
	for name, args := range map[string][]string{
		"debug-dir": {"--debug-dir", t.TempDir()},
		"debug":     {"--debug"},
	} {
		t.Run(name, func(t *testing.T) { saveAndPrint(t, args...) })
	}
}

func saveAndPrint(t *testing.T, args ...string) {
	dir := sockets(t)
	t.Setenv("TMPDIR", t.TempDir())
	agent := startAgent(t, "unix", filepath.Join(dir, "a"))
	agent.SetFault(func(r *http.Request) standin.Fault {
		if r.URL.Path == "/info" {
			return standin.Fault{}
		}
		return standin.Fault{Kind: standin.Answer, Status: http.StatusBadRequest}
	})
	p := daemonProcess(t, agent.URL(), filepath.Join(dir, "s"), args...)
	c, err := client.Open(client.Config{
		Socket: filepath.Join(dir, "s"),
		Origin: client.Origin{Service: "shop", ContainerID: "cid"},
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Publish([]client.Snapshot{
		{
			Key:      client.Key{Service: "shop", Operation: "op", Resource: "GET /cart", HTTPStatus: 200},
			Duration: time.Millisecond, End: time.Now(),
		},
		{
			Key:      client.Key{Service: "shop", Operation: "op", Resource: "GET /cart", HTTPStatus: 200},
			Duration: time.Second, End: time.Now(), Error: true,
		},
	})
	if err := c.Flush(t.Context()); err == nil {
		t.Error("the tracer was notified that a rejected payload was accepted")
	}
	_ = c.Close(t.Context())
	saved := p.await("saved a rejected payload; show it with: spanstatsd dump FILE")
	out, err := program(t, "dump", saved["file"].(string)).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, text := range []string{
		"answer   400 Bad Request: \"a fault on purpose\"", "bytes for 2 spans", "Datadog-Container-Id: cid",
		"origin   service=shop",
		"shop  op  GET /cart", "status=200", "hits 2, errors 1, top-level 0, in all 1.001s", "ok     1 spans",
		"failed 1 spans", "p99 99",
	} {
		if !strings.Contains(string(out), text) {
			t.Errorf("%q is not in:\n%s", text, out)
		}
	}
	_ = p.Process.Signal(syscall.SIGTERM)
	if code, _ := p.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
