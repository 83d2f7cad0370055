package daemon_test

import (
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/daemon"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/status"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
	"github.com/spanstatsd/spanstatsd/lab/standin"
)

// TestAgentDiscovery_DeliversOnceFound tests agent discovery. While no agent is found, spans are
// counted, none are queued, and no agent is reported as unreachable. Once an agent is found, it gets
// every later span once. When it becomes unavailable, later payloads are queued, as for any other
// agent.
func TestAgentDiscovery_DeliversOnceFound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := testConfig(t, dir, "unix://"+filepath.Join(dir, "a"))
	var log lines
	config.Agent.AutoDiscovered, config.Log = true, slog.New(slog.NewTextHandler(&log, nil))
	other := &plain{name: "other"}
	config.Exporters = []export.Exporter{other.describe()}
	d, err := daemon.New(config)
	if err != nil {
		t.Fatal(err)
	}
	d.Start()
	p := &pair{Daemon: d, t: t, socket: config.Ingest.Socket.Path}
	c := p.client("shop")
	for range 3 {
		c.Publish(batch(100, "before"))
		if err := c.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	agentOf := func() status.DestinationStatus {
		all := d.Status().Destinations
		return all[len(all)-1]
	}
	if at, accounting := agentOf(), d.Accounting(); at.Name != "agent" || at.State != export.StateDiscovering ||
		at.Accounting.Pending != 0 || at.Accounting.BeforeDiscovery != 300 || !accounting.Balanced || accounting.Flushed != 300 ||
		d.Status().Agent.State != export.StateDiscovering {
		t.Errorf("before: %+v, %+v", at, accounting)
	}
	metrics := metricsOf(t, d)
	if !strings.Contains(metrics, `spanstatsd_spans_before_discovery_total{destination="agent"} 300`) ||
		!strings.Contains(metrics, `spanstatsd_spans_before_discovery_total{destination="other"} 0`) ||
		strings.Contains(metrics, `spanstatsd_destination_reachable{destination="agent"}`) ||
		strings.Contains(metrics, `spanstatsd_destination_accepting{destination="agent"}`) {
		t.Errorf("metrics:\n%s", metrics)
	}
	agent, err := standin.Start(standin.Config{Network: "unix", Address: filepath.Join(dir, "a")})
	if err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the agent is found", func() bool { return agentOf().State == export.StateAccepting })
	c.Publish(batch(50, "after"))
	if err := c.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if at := agentOf(); at.Accounting.Flushed != 50 || at.Accounting.BeforeDiscovery != 300 || agent.Totals().Hits != 50 {
		t.Errorf("found: %+v, and it has %d spans", at, agent.Totals().Hits)
	}
	agent.Close()
	c.Publish(batch(7, "gone"))
	eventually.True(t, "payloads to be queued for an unreachable agent", func() bool {
		return agentOf().Accounting.PendingInPayloads == 7 && agentOf().State == export.StateUnreachable
	})
	if agent, err = standin.Start(standin.Config{
		Network: "unix",
		Address: filepath.Join(dir, "a"),
	}); err != nil {
		t.Fatal(err)
	}
	defer agent.Close()
	eventually.True(t, "the recovered agent to have the queued payloads", func() bool {
		return agentOf().Accounting.Flushed == 57
	})
	if accounting := p.Stop(); !accounting.Balanced || accounting.Pending != 0 || agent.Totals().Hits != 7 ||
		other.spans != 357 {
		t.Errorf("at the end: %+v, the agent has %d, the other %d", accounting, agent.Totals().Hits, other.spans)
	}
	for message, times := range map[string]int{
		`msg="exporting statistics" other=memory://other auto_discovery="agent at unix://`: 1, "found an agent": 1,
		"the agent does not respond": 0,
	} {
		if strings.Count(log.String(), message) != times {
			t.Errorf("the log does not say %q %d times:\n%s", message, times, log.String())
		}
	}
}

// lines is a log that can be read while it is written.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// metricsOf returns a daemon's response to a scrape.
func metricsOf(t *testing.T, d *daemon.Daemon) string {
	t.Helper()
	response, err := http.Get("http://" + d.HTTPAddr() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
