package program

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
)

// TestWait runs the two container hooks before, while and after a tracer is connected.
func TestWait(t *testing.T) {
	dir := sockets(t)
	agent := startAgent(t, "unix", filepath.Join(dir, "agent"))
	socket, addr := filepath.Join(dir, "s"), freePort(t)
	ready := program(t, "wait", "ready", "--url", "http://"+addr, "--at-most", "1m")
	if err := ready.Start(); err != nil {
		t.Fatal(err)
	}
	daemonProcess(t, agent.URL(), socket, "--http-addr", addr)
	if err := ready.Wait(); err != nil {
		t.Errorf("wait ready, started before the daemon: %v", err)
	}
	c, err := client.Open(client.Config{Socket: socket})
	if err != nil {
		t.Fatal(err)
	}
	c.Publish([]client.Snapshot{{
		Key: client.Key{Service: "a", Operation: "b", Resource: "c"},
		End: time.Now(),
	}})
	if err := c.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for atMost := 300 * time.Millisecond; ; atMost *= 2 {
		out, err := program(t, "wait", "idle", "--url", "http://"+addr, "--at-most",
			atMost.String()).CombinedOutput()
		if err != nil && strings.Contains(string(out), "connections are still open: 1; raise --at-most") {
			break
		}
		if err == nil || atMost > time.Minute { // a shorter wait can end before the first check
			t.Errorf("wait idle with a connected tracer, for %s: %v, %s", atMost, err, out)
			break
		}
	}
	idle := program(t, "wait", "idle", "--url", "http://"+addr, "--at-most", "1m")
	if err := idle.Start(); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := idle.Wait(); err != nil {
		t.Errorf("wait idle, started before the tracer disconnected: %v", err)
	}
}

// TestWait_WithoutDaemon expects a one-line error.
func TestWait_WithoutDaemon(t *testing.T) {
	addr := freePort(t)
	for _, what := range []string{"ready", "idle"} {
		out, err := program(t, "wait", what, "--url", "http://"+addr, "--at-most", "10ms").CombinedOutput()
		if err == nil || !strings.Contains(string(out), "wait for daemon") ||
			strings.Count(string(out), "\n") != 1 {
			t.Errorf("wait %s: %v, %s", what, err, out)
		}
	}
}

// freePort returns an unused address.
func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}
