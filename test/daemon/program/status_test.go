package program

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/client"
	"github.com/spanstatsd/spanstatsd/internal/status"
)

// TestStatus runs the status command for a daemon that has counted spans.
func TestStatus(t *testing.T) {
	dir := sockets(t)
	agent := startAgent(t, "unix", filepath.Join(dir, "agent"))
	socket := filepath.Join(dir, "s")
	daemon, first := daemonWithLog(t, agent.URL(), socket, "--flush-interval", "1s")
	for _, key := range []string{
		"socket", "http", "drainers", "ring_slots", "max_aggregates",
		"see",
	} {
		if first[key] == nil {
			t.Errorf("the first log line does not contain %s: %v", key, first)
		}
	}
	c, err := client.Open(client.Config{Socket: socket, Origin: client.Origin{Service: "shop\x1b[2J"}})
	if err != nil {
		t.Fatal(err)
	}
	c.Publish([]client.Snapshot{{Key: client.Key{
		Service: "shop", Operation: "op",
		Resource: "GET /\x1b]0;x\a\u202e",
	}, Duration: time.Millisecond, End: time.Now()}})
	if err := c.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	url := "http://" + first["http"].(string)
	out, err := program(t, "status", "--url", url, "--json").Output()
	var got status.Status
	if err != nil || json.Unmarshal(out, &got) != nil || got.Schema != status.StatusSchema ||
		got.Accounting.Flushed != 1 || len(got.Clients) != 1 {
		t.Errorf("--json: %v, %s", err, out)
	}
	origins := map[string]string{}
	for _, s := range got.Config {
		origins[s.Name] = s.Origin
	}
	if origins["socket"] != status.FromFlag || origins["max-origins"] != status.FromDefault {
		t.Errorf("origins of the settings: %v", origins)
	}
	out, err = program(t, "status", "--url", url).Output()
	for _, text := range []string{
		"Every received span is accounted for", "received", "Last flushes", "1 accepted",
		"GET /", "accepts payloads", "1 of 1,024 connections",
	} {
		if !strings.Contains(string(out), text) {
			t.Errorf("the status output does not contain %q: %v\n%s", text, err, out)
		}
	}
	if found := controls.Find(out); found != nil {
		t.Errorf("output that is not a terminal got control characters %q", found)
	}
	if err := daemon.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	daemon.exit()
	c.Close(t.Context())
	cmd := program(t, "status", "--url", url)
	out, err = cmd.CombinedOutput()
	if err == nil || cmd.ProcessState.ExitCode() != 3 || !strings.Contains(string(out), "check that the daemon is running") ||
		strings.Count(string(out), "\n") != 1 {
		t.Errorf("without a daemon: %v, %s", err, out)
	}
}

// TestStatus_CountsLive publishes three keys of one origin until /status shows them in the current
// cycle.
func TestStatus_CountsLive(t *testing.T) {
	dir := sockets(t)
	agent := startAgent(t, "unix", filepath.Join(dir, "agent"))
	socket := filepath.Join(dir, "s")
	daemon := daemonProcess(t, agent.URL(), socket, "--max-aggregates", "99", "--max-origins", "9",
		"--max-connections", "7")
	c, err := client.Open(client.Config{
		Socket: socket, MaxAge: time.Millisecond,
		Origin: client.Origin{Service: "shop"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	want := [3]status.Bounded{{Live: 3, Max: 99}, {Live: 1, Max: 9}, {Live: 1, Max: 7}}
	var got [3]status.Bounded
	for range 2_000 {
		for _, resource := range []string{"a", "b", "c"} {
			c.Publish([]client.Snapshot{{Key: client.Key{
				Service: "shop", Operation: "op",
				Resource: resource,
			}, End: time.Now()}})
		}
		time.Sleep(20 * time.Millisecond)
		response, err := http.Get("http://" + daemon.http + "/status")
		if err != nil {
			t.Fatal(err)
		}
		var s status.Status
		err = json.NewDecoder(response.Body).Decode(&s)
		response.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		got = [3]status.Bounded{
			s.Aggregates, s.Origins,
			{Live: s.Connections.Live, Max: s.Connections.Max},
		}
		if got == want {
			return
		}
	}
	t.Errorf("aggregates, origins and connections are %v, want %v", got, want)
}

// controls matches control characters except line feeds.
var controls = regexp.MustCompile(`[^\P{C}\n]`)
