package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"time"

	"github.com/spanstatsd/spanstatsd/bench/peers/agent"
	"github.com/spanstatsd/spanstatsd/internal/bench/measure"
	"github.com/spanstatsd/spanstatsd/internal/workload"
)

// cost is what one round has found of one shape, of a span but for the memory.
type cost struct {
	ours, agents float64 // CPU ns
	allocs       float64
	peak         float64 // bytes
}

// costs are the samples of all rounds, by shape.
type costs map[string][]cost

func (c costs) median(shape string, of func(cost) float64) float64 {
	return measure.Median(c[shape], of)
}

// ratio is what the agent pays for a span over what we do, round by round.
func (c costs) ratio(shape string) float64 {
	return c.median(shape, func(c cost) float64 { return c.agents / c.ours })
}

func (c costs) peak(shape string) (most float64) {
	for _, one := range c[shape] {
		most = max(most, one.peak)
	}
	return most
}

// measureCosts has ours and the agent's take turns.
func measureCosts(o *options) (costs, error) {
	all := costs{}
	for round := range o.rounds {
		for _, shape := range o.shapes {
			one, err := measureDaemon(o, shape)
			if err != nil {
				return nil, fmt.Errorf("measure %s: %w", shape, err)
			}
			if one.agents, err = measureAgent(shape, uint64(round)); err != nil {
				return nil, fmt.Errorf("measure the agent on %s: %w", shape, err)
			}
			all[shape] = append(all[shape], one)
		}
	}
	return all, nil
}

// memoryLimit is that of the smallest pod of docs/tuning.md.
const memoryLimit = "64MiB"

// measureDaemon floods a whole daemon as fast as it goes. Its tracer waits for room, so that
// nothing is dropped.
func measureDaemon(o *options, shape string) (cost, error) {
	command := exec.Command(o.program, "bench", "--json", "--workload="+workload.Flood(shape, whole), "--for="+o.least.String(), "--", "--buffer=block")
	command.Env = append(os.Environ(), "GOMEMLIMIT="+memoryLimit)
	out, err := command.Output()
	if err != nil {
		return cost{}, fmt.Errorf("run daemon: %w: %s", err, out)
	}
	var report struct {
		CPU    float64 `json:"daemon_cpu_ns_per_span"`
		Allocs float64 `json:"daemon_allocs_per_span"`
		Peak   float64 `json:"daemon_peak_rss_bytes"`
		Books  struct {
			Dropped uint64 `json:"dropped"`
		} `json:"books"`
	}
	if err := json.Unmarshal(out, &report); err != nil {
		return cost{}, fmt.Errorf("read report: %w", err)
	}
	if report.CPU == 0 || report.Books.Dropped > 0 {
		return cost{}, fmt.Errorf("read report: %s", out)
	}
	return cost{ours: report.CPU, allocs: report.Allocs, peak: report.Peak}, nil
}

// drawn is how many spans the agent counts in a round: each once, because afterwards it
// would know their keys. Spans of many labels are fewer, so that they fit into memory.
const (
	drawn      = 1 << 15
	drawnLarge = 1 << 11
)

// measureAgent is what a span costs the agent's own path, in nanoseconds of CPU time.
func measureAgent(shape string, seed uint64) (float64, error) {
	generator, err := workload.New(workload.Flood(shape, whole), seed)
	if err != nil {
		return 0, fmt.Errorf("draw spans: %w", err)
	}
	spans := make([]workload.Snapshot, drawn)
	if workload.IsHostile(shape) {
		spans = spans[:drawnLarge]
	}
	generator.Fill(spans, time.Now().UnixNano())
	count, err := agent.NewPath(spans)
	if err != nil {
		return 0, err
	}
	runtime.GC() // the garbage of the preparation is not the agent's
	spent, err := measure.Of(func() error {
		count()
		return nil
	})
	return float64(spent.CPU) / float64(len(spans)), err
}
