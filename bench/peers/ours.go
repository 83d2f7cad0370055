package main

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/workload"
)

// The two ways in which ours is measured. The ratios are against the second.
const (
	inProcess   = "spanstatsd, in process"
	wholeDaemon = "spanstatsd, whole daemon"
	numbered    = "the same, keys as numbers"
)

// libraries are the peers.
func libraries() []system {
	return []system{
		{name: "agent, Concentrator.Add, 44 peer tags", prepare: newConcentrator},
		{name: "agent, SpanConcentrator, one peer tag", prepare: newTracerPath},
		{name: "agent, only AddSpan of a prepared span", prepare: newAddSpan},
		{name: "spanmetrics connector, as it comes", prepare: newSpanMetrics},
		{name: "spanmetrics connector, our labels", prepare: newSpanMetricsLabels},
	}
}

// daemons are ours.
func daemons(o *options) []system {
	return []system{
		{name: inProcess, measure: func(name string, least time.Duration) (sample, error) {
			return benchmarkIngest(o.inProcess, name, least)
		}},
		{name: wholeDaemon, measure: func(name string, least time.Duration) (sample, error) {
			return runBench(o.program, name, "raw", least)
		}},
		{name: numbered, measure: func(name string, least time.Duration) (sample, error) {
			return runBench(o.program, name, "numbered", least)
		}},
	}
}

// benchmarkIngest runs the benchmark of a snapshot whose key is known, or is new
// where every one is.
func benchmarkIngest(program, name string, least time.Duration) (sample, error) {
	path := "whole"
	if name == workload.Adversarial {
		path = "miss"
	}
	out, err := exec.Command(program, "-test.run=^$", "-test.benchtime="+least.String(),
		"-test.bench=^BenchmarkSnapshot$/^"+name+"$/^"+path+"$").CombinedOutput()
	if err != nil {
		return sample{}, fmt.Errorf("run benchmark: %w: %s", err, out)
	}
	var s sample
	found := 0
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || !strings.HasPrefix(fields[0], "BenchmarkSnapshot/") {
			continue
		}
		for i := 2; i+1 < len(fields); i += 2 {
			value, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return sample{}, fmt.Errorf("read benchmark: %w", err)
			}
			switch fields[i+1] {
			case "cpu-ns":
				s.cpu = value
				found++
			case "allocs":
				s.allocs = value
				found++
			}
		}
	}
	if found != 2 {
		return sample{}, fmt.Errorf("read benchmark: %q has not the figures of one line", out)
	}
	return s, nil
}

// runBench drives a whole daemon as fast as it goes. Its tracers wait for room,
// so that nothing is dropped.
func runBench(program, name, keys string, least time.Duration) (sample, error) {
	out, err := exec.Command(program, "bench", "--json", "--workload="+name, "--keys="+keys,
		"--for="+max(least, time.Second).String(), "--", "--buffer=block").Output()
	if err != nil {
		return sample{}, fmt.Errorf("run daemon: %w: %s", err, out)
	}
	var report struct {
		CPU    float64 `json:"daemon_cpu_ns_per_span"`
		Allocs float64 `json:"daemon_allocs_per_span"`
		Books  struct {
			Dropped uint64 `json:"dropped"`
		} `json:"books"`
	}
	if err := json.Unmarshal(out, &report); err != nil {
		return sample{}, fmt.Errorf("read report: %w", err)
	}
	if report.CPU == 0 || report.Books.Dropped > 0 {
		return sample{}, fmt.Errorf("read report: %s", out)
	}
	return sample{report.CPU, report.Allocs}, nil
}
