package tracers

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/daemon"
	exporter "github.com/spanstatsd/spanstatsd/internal/export/agent"
	"github.com/spanstatsd/spanstatsd/internal/ingest/datadog"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/status"
)

// runningDaemon is a daemon in front of an agent.
type runningDaemon struct {
	*daemon.Daemon
	socket string
}

func startDaemon(t testing.TB, agent string, edit func(*datadog.Config)) *runningDaemon {
	t.Helper()
	dir := t.TempDir()
	config := daemon.DefaultConfig()
	config.Aggregate.Masking = registry.MaskNever
	config.Ingest.Socket.Path, config.APM.Socket.Path = filepath.Join(dir, "spans.sock"),
		filepath.Join(dir, "apm.sock")
	edit(&config.APM)
	for label := range config.Aggregate.Budgets {
		config.Aggregate.Budgets[label] = 1 << 16 // names that occur once keep their label, as in the tracer
	}
	config.HTTPAddr, config.Log = "127.0.0.1:0", slog.New(slog.DiscardHandler)
	config.Agent.URL = exporter.URL{Network: "unix", Address: agent}
	d, err := daemon.New(config)
	if err != nil {
		t.Fatal(err)
	}
	d.Start()
	return &runningDaemon{d, config.APM.Socket.Path}
}

// stop stops the daemon and returns its accounting and its trace request counters.
func (d *runningDaemon) stop(t *testing.T) (status.Accounting, counters) {
	t.Helper()
	c := d.counters(t)
	return d.Stop(), c
}

// counters are the non-zero counters of tracers' requests.
type counters map[string]float64

const (
	unsampledTraces  = "spanstatsd_apm_unsampled_traces_total"
	mergedStatistics = `spanstatsd_apm_stats_requests_total{result="merged"}`
)

func (d *runningDaemon) counters(t *testing.T) counters {
	t.Helper()
	resp, err := http.Get("http://" + d.HTTPAddr() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	c := counters{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !strings.HasPrefix(name, "spanstatsd_apm_") || !strings.Contains(name, "_total") {
			continue
		}
		var n float64
		if _, err := fmt.Sscan(value, &n); err != nil {
			t.Fatal(err)
		}
		if n != 0 {
			c[name] = n
		}
	}
	return c
}
