package main

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
	"github.com/spanstatsd/spanstatsd/internal/dump"
	"github.com/spanstatsd/spanstatsd/internal/standin"
)

// A payload that the agent refuses can be looked at afterwards, where it was asked
// to be kept: in a directory of its own, or that of temporary files.
func TestRefusedPayloadIsKeptAndPrinted(t *testing.T) {
	for name, args := range map[string][]string{"debug-dir": {"--debug-dir", t.TempDir()}, "debug": {"--debug"}} {
		t.Run(name, func(t *testing.T) { keepAndPrint(t, args...) })
	}
}

func keepAndPrint(t *testing.T, args ...string) {
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
	c, err := client.Open(client.Config{Socket: filepath.Join(dir, "s"), Origin: client.Origin{Service: "shop", ContainerID: "cid"}})
	if err != nil {
		t.Fatal(err)
	}
	c.Publish([]client.Snapshot{
		{Key: client.Key{Service: "shop", Operation: "op", Resource: "GET /cart", HTTPStatus: 200}, Duration: time.Millisecond, End: time.Now()},
		{Key: client.Key{Service: "shop", Operation: "op", Resource: "GET /cart", HTTPStatus: 200}, Duration: time.Second, End: time.Now(), Error: true},
	})
	if err := c.Flush(t.Context()); err == nil {
		t.Error("the tracer was told that a refused payload was taken")
	}
	_ = c.Close(t.Context())
	kept := p.await("refused payload is kept; look at it with: spanstatsd dump FILE")
	out, err := program(t, "dump", kept["file"].(string)).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, says := range []string{
		"answer   400 Bad Request: \"a fault on purpose\"", "bytes for 2 spans", "Datadog-Container-Id: cid", "origin   service=shop",
		"shop  op  GET /cart", "status=200", "hits 2, errors 1, top-level 0, in all 1.001s", "ok     1 spans", "failed 1 spans", "p99 99",
	} {
		if !strings.Contains(string(out), says) {
			t.Errorf("%q is not in:\n%s", says, out)
		}
	}
	_ = p.Process.Signal(syscall.SIGTERM)
	if code, _ := p.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// What can't be decoded is named by its place, and nothing in it reaches the
// terminal as it is.
func TestUndecodableDumpIsPrinted(t *testing.T) {
	var out bytes.Buffer
	err := printRefusal(&out, &dump.Refusal{
		Time: time.Unix(0, 0), Agent: "unix:///a", Spans: 1, Status: "400 Bad Request", Said: "\x1b[2J",
		Sent: http.Header{"X": {"\x1b[2J"}}, Body: []byte("\x81\xa5Stats\x91\xc0"),
	})
	if err != nil || !strings.Contains(out.String(), "can't be decoded: decode payload: Stats: [0]: a nil element") || strings.Contains(out.String(), "\x1b") {
		t.Errorf("%v\n%q", err, out.String())
	}
}

func TestUnusableDumps(t *testing.T) {
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args string
		code int
		says string
	}{
		{"dump", 2, "takes one file"},
		{"dump a b", 2, "takes one file"},
		{"dump /nowhere/at/all", 1, "no such file"},
		{"dump " + other, 1, "--debug-dir"},
		{"run --debug-dir=/nowhere/at/all", 2, "debug-dir"},
	} {
		cmd := program(t, strings.Fields(test.args)...)
		out, _ := cmd.CombinedOutput() // the code says it
		if code := cmd.ProcessState.ExitCode(); code != test.code || !strings.Contains(string(out), test.says) {
			t.Errorf("%s: code %d, %s; want %d and %q", test.args, code, out, test.code, test.says)
		}
	}
}
