package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/workload"
)

// cell is one system on one workload.
type cell struct{ system, workload string }

// results are the samples of all rounds.
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

// median of one of a sample's two figures.
func (r *results) median(at cell, of func(sample) float64) float64 {
	figures := make([]float64, 0, len(r.samples[at]))
	for _, s := range r.samples[at] {
		figures = append(figures, of(s))
	}
	slices.Sort(figures)
	return figures[len(figures)/2]
}

func cpu(s sample) float64    { return s.cpu }
func allocs(s sample) float64 { return s.allocs }

// print writes a line for each system and workload, in the form of the
// documentation.
func (r *results) print(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 1, ' ', 0)
	fmt.Fprintln(table, "| system\t| workload\t| CPU ns a span\t| allocations\t| times ours\t|")
	fmt.Fprintln(table, "| ---\t| ---\t| ---\t| ---\t| ---\t|")
	for _, name := range r.workloads {
		ours := r.median(cell{wholeDaemon, name}, cpu)
		for _, s := range r.systems {
			at := cell{s.name, name}
			ns := r.median(at, cpu)
			fmt.Fprintf(table, "| %s\t| `%s`\t| %.0f\t| %.2f\t| %.1f\t|\n", s.name, name, ns, r.median(at, allocs), ns/ours)
		}
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}
