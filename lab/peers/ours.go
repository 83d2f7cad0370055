package main

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"time"

	"github.com/spanstatsd/spanstatsd/lab/peers/agent"
)

// Names of the systems in the ratios: the agent's own path; and our daemon, with a full key or
// a key number in each span, or with the Prometheus exporter in addition to the agent's.
const (
	agentsPath  = "agent, Concentrator.Add, 44 peer tags"
	wholeDaemon = "spanstatsd, whole daemon"
	numbered    = "the same, keys as numbers"
	scraped     = "the whole daemon, with /metrics/spans as well"
)

// libraries returns the peers.
func libraries() []system {
	return []system{
		{name: agentsPath, prepare: agent.NewConcentrator},
		{name: "agent, SpanConcentrator, one peer tag", prepare: newTracerPath},
		{name: "agent, only AddSpan of a prepared span", prepare: newAddSpan},
		{name: "spanmetrics connector, as it comes", prepare: newSpanMetrics},
		{name: "spanmetrics connector, our labels", prepare: newSpanMetricsLabels},
	}
}

// daemons returns the variants of our daemon.
func daemons(o *options) []system {
	return []system{
		{name: wholeDaemon, measure: func(name string, least time.Duration) (sample, error) {
			return runBench(o.program, name, "raw", least)
		}},
		{name: numbered, measure: func(name string, least time.Duration) (sample, error) {
			return runBench(o.program, name, "numbered", least)
		}},
		{name: scraped, measure: func(name string, least time.Duration) (sample, error) {
			return runBench(o.program, name, "raw", least, "--prometheus")
		}},
	}
}

// runBench measures a complete daemon at full speed. Its tracers wait if buffers are full, so
// that nothing is dropped. flags are additional flags of the daemon.
func runBench(program, name, keys string, least time.Duration, flags ...string) (sample, error) {
	args := []string{
		"bench", "--json", "--workload=" + name, "--keys=" + keys,
		"--for=" + max(least, time.Second).String(), "--", "--buffer=block",
	}
	out, err := exec.Command(program, append(args, flags...)...).Output()
	if err != nil {
		return sample{}, fmt.Errorf("run daemon: %w: %s", err, out)
	}
	var report struct {
		CPU        float64 `json:"daemon_cpu_ns_per_span"`
		Allocs     float64 `json:"daemon_allocs_per_span"`
		Accounting struct {
			Dropped uint64 `json:"dropped"`
		} `json:"accounting"`
	}
	if err := json.Unmarshal(out, &report); err != nil {
		return sample{}, fmt.Errorf("read report: %w", err)
	}
	if report.CPU == 0 || report.Accounting.Dropped > 0 {
		return sample{}, fmt.Errorf("read report: %s", out)
	}
	return sample{report.CPU, report.Allocs}, nil
}
