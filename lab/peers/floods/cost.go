package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"github.com/spanstatsd/spanstatsd/lab/bench/measure"
	"github.com/spanstatsd/spanstatsd/lab/peers/agent"
	"github.com/spanstatsd/spanstatsd/lab/workload"
)

// cost is the result of one round for one shape. All fields except peak are per span.
type cost struct {
	ours        float64 // CPU time of the daemon in nanoseconds
	whole, path float64 // CPU time of the agent's code in nanoseconds, from socket to payload, and on spans in memory
	allocs      float64
	peak        float64 // peak resident set of the daemon in bytes
}

// costs holds the samples of all rounds, by shape.
type costs map[string][]cost

func (c costs) median(shape string, figure func(cost) float64) float64 {
	return measure.Median(c[shape], figure)
}

// ratio returns the agent's cost divided by ours, both from socket to payload.
func ratio(c cost) float64 { return c.whole / c.ours }

// pathRatio returns the cost of the agent's code on spans in memory, divided by ours.
func pathRatio(c cost) float64 { return c.path / c.ours }

func (c costs) peak(shape string) (most float64) {
	for _, one := range c[shape] {
		most = max(most, one.peak)
	}
	return most
}

// measureCosts measures our daemon and the agent's code in turns.
func measureCosts(o *options) (costs, error) {
	all := costs{}
	for round := range o.rounds {
		for _, shape := range o.shapes {
			one, err := measureDaemon(o, shape)
			if err != nil {
				return nil, fmt.Errorf("measure %s: %w", shape, err)
			}
			spans, err := draw(shape, uint64(round))
			if err != nil {
				return nil, err
			}
			if one.whole, err = measureWhole(shape, spans); err != nil {
				return nil, err
			}
			if one.path, err = measurePath(spans); err != nil {
				return nil, fmt.Errorf("measure the agent's own path on %s: %w", shape, err)
			}
			all[shape] = append(all[shape], one)
		}
	}
	return all, nil
}

// memoryLimit is that of the smallest pod in docs/configuration.md.
const memoryLimit = "64MiB"

// measureDaemon floods a complete daemon at full speed. Its tracer waits if buffers are full,
// so that nothing is dropped.
func measureDaemon(o *options, shape string) (cost, error) {
	command := exec.Command(o.program, "bench", "--json", "--workload="+workload.Flood(shape, whole),
		"--for="+o.least.String(), "--", "--buffer=block")
	command.Env = append(os.Environ(), "GOMEMLIMIT="+memoryLimit)
	out, err := command.Output()
	if err != nil {
		return cost{}, fmt.Errorf("run daemon: %w: %s", err, out)
	}
	var report struct {
		CPU        float64 `json:"daemon_cpu_ns_per_span"`
		Allocs     float64 `json:"daemon_allocs_per_span"`
		Peak       float64 `json:"daemon_peak_rss_bytes"`
		Accounting struct {
			Dropped uint64 `json:"dropped"`
		} `json:"accounting"`
	}
	if err := json.Unmarshal(out, &report); err != nil {
		return cost{}, fmt.Errorf("read report: %w", err)
	}
	if report.CPU == 0 || report.Accounting.Dropped > 0 {
		return cost{}, fmt.Errorf("read report: %s", out)
	}
	return cost{ours: report.CPU, allocs: report.Allocs, peak: report.Peak}, nil
}

// measurePath returns the CPU time in nanoseconds that the agent's code needs per span in
// memory.
func measurePath(spans []workload.Snapshot) (float64, error) {
	count, err := agent.NewPath(spans)
	if err != nil {
		return 0, err
	}
	runtime.GC() // collect the garbage of the preparation
	spent, err := measure.Of(func() error {
		count()
		return nil
	})
	return float64(spent.CPU) / float64(len(spans)), err
}
