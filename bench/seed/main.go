// Seed repeats the six benchmarks that this project's ideas came with, on its
// own parts: the ring against a queue of objects, the publishing of a 64-span
// trace, a table that 4096 keys in turn never fit, a resource and a peer that are
// new with every span, and eight tracers whose every label is.
//
// Each line says what was attempted and what was accepted, a second: throughput
// by refusal is no throughput. In the ring and the queue accepted is what the
// consumer took, end to end, and a producer that was refused lets others run; in
// the others, which go through the client library and a whole daemon, it is what
// that counted, and nobody waits for room.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"text/tabwriter"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/bench"
	"github.com/spanstatsd/spanstatsd/internal/workload"
)

func main() {
	program := flag.String("program", "../bin/spanstatsd", "the daemon's program")
	lasts := flag.Duration("time", 2*time.Second, "how long each benchmark lasts")
	flag.Parse()
	if err := run(os.Stdout, *program, *lasts); err != nil {
		fmt.Fprintln(os.Stderr, "bench seed:", err)
		os.Exit(1)
	}
}

// run prints a line for each benchmark.
func run(out io.Writer, program string, lasts time.Duration) error {
	fmt.Fprintf(out, "%s each, GOMAXPROCS %d\n\n", lasts, runtime.GOMAXPROCS(0))
	table := tabwriter.NewWriter(out, 0, 0, 1, ' ', 0)
	fmt.Fprintln(table, "| benchmark\t| attempted a second\t| accepted a second\t|\t|")
	fmt.Fprintln(table, "| ---\t| ---\t| ---\t| ---\t|")
	for _, producers := range []int{1, 8, 16} {
		for _, q := range []queue{newRingQueue(), newObjectQueue()} {
			t := race(q, producers, lasts)
			fmt.Fprintf(table, "| %s, %d producers\t| %s\t| %s\t| %.1f ns an attempt and producer\t|\n",
				q.name(), producers, millions(t.attempted), millions(t.accepted), t.publish)
		}
	}
	for _, through := range daemons {
		report, err := through.run(program, lasts)
		if err != nil {
			return fmt.Errorf("run %s: %w", through.name, err)
		}
		fmt.Fprintf(table, "| %s\t| %s\t| %s\t| a batch of %d: p50 %s, p99 %s\t|\n", through.name,
			millions(report.SpansAttemptedPerSecond), millions(report.SpansAcceptedPerSecond), report.Batch,
			time.Duration(report.Publish.P50), time.Duration(report.Publish.P99))
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("write table: %w", err)
	}
	return nil
}

func millions(a float64) string { return fmt.Sprintf("%.2f M", a/1e6) }

// through is a benchmark that goes through a whole daemon.
type through struct {
	name   string
	change func(*bench.Config)
}

var daemons = []through{
	{"publish of a 64-span trace", func(c *bench.Config) { c.Keys = bench.Numbered }},
	{"the same, labels encoded each time", func(*bench.Config) {}},
	{"4096 keys in turn over a table of 2048", func(c *bench.Config) { c.Workload = workload.Pool }},
	{"high-cardinality resource", func(c *bench.Config) { c.Workload = workload.UniqueResource }},
	{"high-cardinality peer", func(c *bench.Config) { c.Workload = workload.UniquePeer }},
	{"adversarial, 8 producers", func(c *bench.Config) {
		c.Workload, c.Producers, c.Connections = workload.Adversarial, 8, 8
	}},
}

func (t *through) run(program string, lasts time.Duration) (*bench.Report, error) {
	c := bench.DefaultConfig()
	c.Program, c.For, c.Tracer, c.Log = program, lasts, bench.Client, os.Stderr
	t.change(&c)
	report, err := bench.Run(context.Background(), c)
	if err == nil && !report.Holds() {
		err = fmt.Errorf("the figures do not agree: %+v", *report)
	}
	return report, err
}
