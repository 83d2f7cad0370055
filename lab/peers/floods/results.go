package main

import (
	"fmt"
	"io"
	"math"
	"text/tabwriter"

	"github.com/spanstatsd/spanstatsd/lab/workload"
)

// printTable writes one line per shape, in the format of the documentation.
func printTable(out io.Writer, shapes []string, c costs, n names) error {
	table := tabwriter.NewWriter(out, 0, 0, 1, ' ', 0)
	fmt.Fprintln(table, "| flood\t| daemon CPU ns\t| the agent, socket to payload\t| times\t| its own path "+
		"in memory\t| times\t| allocations\t| peak MiB\t| honest keys kept at 5 %\t| at 50 %\t|")
	fmt.Fprintln(table, "| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t| ---\t|")
	for _, shape := range shapes {
		hostile := ""
		if workload.IsHostile(shape) {
			hostile = ", hostile"
		}
		fmt.Fprintf(table, "| `%s`%s\t| %.0f\t| %.0f\t| %.1f\t| %.0f\t| %.1f\t| %.2f\t| %.0f\t|", shape,
			hostile,
			c.median(shape, func(c cost) float64 { return c.ours }),
			c.median(shape, func(c cost) float64 { return c.whole }), c.median(shape, ratio),
			c.median(shape, func(c cost) float64 { return c.path }), c.median(shape, pathRatio),
			c.median(shape, func(c cost) float64 { return c.allocs }), c.peak(shape)/(1<<20))
		for _, percent := range percents {
			fmt.Fprintf(table, " %.1f %%\t|", 100*n.worst(shape, percent))
		}
		fmt.Fprintln(table)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}

// worstRatio returns the lowest ratio of the shapes that an application can generate, or of the
// hostile ones, and the number of these shapes.
func worstRatio(shapes []string, hostile bool, c costs, ratio func(cost) float64) (worst float64, count int) {
	worst = math.Inf(1)
	for _, shape := range shapes {
		if workload.IsHostile(shape) == hostile {
			worst, count = min(worst, c.median(shape, ratio)), count+1
		}
	}
	return worst, count
}
