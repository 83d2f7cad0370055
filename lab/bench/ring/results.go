package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"text/tabwriter"

	"github.com/spanstatsd/spanstatsd/lab/bench/measure"
)

// cell identifies a contestant and a number of producers.
type cell struct{ contestant, count int }

// results holds the samples of all rounds.
type results struct {
	publish map[cell][]sample
	through map[cell][]sample
}

func newResults(rounds int) results {
	r := results{publish: map[cell][]sample{}, through: map[cell][]sample{}}
	for i := range contestants {
		for _, count := range producers {
			at := cell{i, count}
			r.publish[at] = make([]sample, 0, rounds)
			r.through[at] = make([]sample, 0, rounds)
		}
	}
	return r
}

// round takes one sample of each kind. It first collects garbage, so that no contestant pays
// for the one before, and fills the queues once, because the first access to a page costs
// kernel time.
func (r results) round(i, count int, o options) error {
	c, at := contestants[i], cell{i, count}
	q, err := c.make(o.fill)
	if err != nil {
		return err
	}
	if _, err := publishOnly(q, count, o.fill); err != nil {
		return err
	}
	runtime.GC()
	s, err := publishOnly(q, count, o.fill)
	if err != nil {
		return err
	}
	r.publish[at] = append(r.publish[at], s)
	if q, err = c.make(o.slots); err != nil {
		return err
	}
	if _, err := publishOnly(q, count, o.slots); err != nil {
		return err
	}
	runtime.GC()
	if s, err = endToEnd(q, count, c.load); err != nil {
		return err
	}
	r.through[at] = append(r.through[at], s)
	return nil
}

func wall(s sample) float64 { return s.wall }
func cpu(s sample) float64  { return s.cpu }

// print writes one row per contestant and number of producers, and the ratio to watch when the
// code changes.
func (r results) print(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "queue\trun\tproducers\tpublish ns\tCPU ns\tend to end M/s\twall ns\tCPU ns\t")
	for i, c := range contestants {
		for _, count := range producers {
			at := cell{i, count}
			ns := measure.Median(r.through[at], wall)
			fmt.Fprintf(table, "%s\t%d\t%d\t%.1f\t%.1f\t%.1f\t%.1f\t%.1f\t\n", c.name, c.run, count,
				measure.Median(r.publish[at], wall), measure.Median(r.publish[at], cpu),
				1e3/ns, ns, measure.Median(r.through[at], cpu))
		}
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	_, err := fmt.Fprintf(out, "\nring vs channel, runs of 16, end to end: %.1fx\n", r.ratio(1, 3))
	return err
}

// ratio returns how many times as fast one contestant is as another, as the median over the
// numbers of producers.
func (r results) ratio(one, other int) float64 {
	ratios := make([]float64, 0, len(producers))
	for _, count := range producers {
		ratios = append(ratios, measure.Median(r.through[cell{other, count}],
			wall)/measure.Median(r.through[cell{one, count}], wall))
	}
	slices.Sort(ratios)
	middle := len(ratios) / 2
	return (ratios[middle-1] + ratios[middle]) / 2
}
