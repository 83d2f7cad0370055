package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spanstatsd/spanstatsd/lab/bench/measure"
	"github.com/spanstatsd/spanstatsd/lab/workload"
)

// cell identifies one system with one workload.
type cell struct{ system, workload string }

// results holds the samples of all rounds.
type results struct {
	workloads []string
	systems   []system
	samples   map[cell][]sample
}

func newResults(workloads []string, systems []system) *results {
	return &results{workloads: workloads, systems: systems, samples: map[cell][]sample{}}
}

// round takes one sample.
func (r *results) round(s system, name string, spans []workload.Snapshot, least time.Duration) error {
	var taken sample
	var err error
	if s.prepare != nil {
		taken, err = s.countFor(name, spans, least)
	} else {
		taken, err = s.measure(name, least)
	}
	if err != nil {
		return err
	}
	at := cell{s.name, name}
	r.samples[at] = append(r.samples[at], taken)
	return nil
}

func (r *results) median(key cell, figure func(sample) float64) float64 {
	return measure.Median(r.samples[key], figure)
}

func cpu(s sample) float64    { return s.cpu }
func allocs(s sample) float64 { return s.allocs }

// print writes one line per system, in the format of the documentation: for each workload its
// CPU time in nanoseconds, its allocations, and the cost as a multiple of ours.
func (r *results) print(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 1, ' ', 0)
	fmt.Fprint(table, "| CPU ns a span, allocations, times ours\t|")
	for _, name := range r.workloads {
		fmt.Fprintf(table, " `%s`\t|", name)
	}
	fmt.Fprint(table, "\n| ---\t|"+strings.Repeat(" ---\t|", len(r.workloads))+"\n")
	for _, s := range r.systems {
		fmt.Fprintf(table, "| %s\t|", s.name)
		for _, name := range r.workloads {
			at := cell{s.name, name}
			ns := r.median(at, cpu)
			fmt.Fprintf(table, " %.0f, %.2f, %.1f\t|", ns, r.median(at, allocs),
				ns/r.median(cell{wholeDaemon, name}, cpu))
		}
		fmt.Fprintln(table)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}

// budgets are the minimum ratios within one run: the cost of the agent's own path divided by
// ours. The other value is the ratio measured before the budgets were ratios (ff4118a).
var budgets = []struct {
	workload, ours string
	least, before  float64
}{
	{workload.Stable, wholeDaemon, 20, 38},
	{workload.Pool, wholeDaemon, 20, 38},
	{workload.Skewed, wholeDaemon, 12, 21},
	{workload.Stable, numbered, 35, 75},
	{workload.Adversarial, wholeDaemon, 2.5, 30}, // a flood needs to be bounded and fair, but not fast
}

// printBudgets writes one line for each budget whose workload was measured.
func (r *results) printBudgets(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 1, ' ', 0)
	fmt.Fprintln(table, "| workload\t| the agent's own path, ns\t| ours, ns\t| times\t| before\t| "+
		"budget\t| \t|")
	fmt.Fprintln(table, "| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t|")
	for _, b := range budgets {
		if !slices.Contains(r.workloads, b.workload) {
			continue
		}
		name := "`" + b.workload + "`"
		if b.ours == numbered {
			name += ", keys as numbers"
		}
		agents, ours := r.median(cell{agentsPath, b.workload}, cpu), r.median(cell{b.ours, b.workload}, cpu)
		verdict := "within"
		if agents < b.least*ours {
			verdict = "OVER"
		}
		fmt.Fprintf(table, "| %s\t| %.0f\t| %.0f\t| %.1f\t| %.0f\t| %.1f\t| %s\t|\n", name, agents, ours,
			agents/ours, b.before, b.least, verdict)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write budgets: %w", err)
	}
	return nil
}
