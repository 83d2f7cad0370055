// Peers measures the cost of counting a span: of the Datadog agent's concentrator, the
// OpenTelemetry spanmetrics connector, and this daemon, with identical spans, in turns within
// one run.
//
// Every figure is CPU time of all threads, including kernel and garbage collection, divided by
// the number of counted spans, as the median of the rounds. The peers are called as libraries,
// with input prepared in advance as far as possible; their figures exclude encoding and sending
// the results. Ours is the complete daemon, measured by spanstatsd-lab bench: a separate
// process that reads from a socket, including flushes.
//
// The first table contains the cost of each system as a multiple of the complete daemon's. The
// second table compares the ratio of the agent's own path to ours with the budgets of this
// project. Absolute times are not comparable between machines; ratios nearly are.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/spanstatsd/spanstatsd/lab/workload"
)

func main() {
	var o options
	var names string
	flag.IntVar(&o.rounds, "rounds", 7, "rounds of each figure")
	flag.DurationVar(&o.least, "time", 300*time.Millisecond, "how long a round lasts at least")
	flag.StringVar(&names, "workloads", strings.Join([]string{
		workload.Stable, workload.Pool, workload.Skewed,
		workload.Adversarial,
	}, ","), "workloads, separated by commas")
	flag.StringVar(&o.program, "program", "../../bin/spanstatsd-lab",
		"the program that measures the daemon next to it")
	flag.Parse()
	o.workloads = strings.Split(names, ",")
	if err := run(os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench peers:", err)
		os.Exit(1)
	}
}

// run measures everything and prints the tables.
func run(out io.Writer, o options) error {
	if o.rounds < 1 {
		return fmt.Errorf("read flags: %d rounds; use at least 1", o.rounds)
	}
	fmt.Fprintf(out, "%d rounds of at least %s, GOMAXPROCS %d\n\n", o.rounds, o.least, runtime.GOMAXPROCS(0))
	systems := append(libraries(), daemons(&o)...)
	results := newResults(o.workloads, systems)
	for _, name := range o.workloads {
		spans, err := draw(name)
		if err != nil {
			return err
		}
		for range o.rounds {
			for _, s := range systems {
				if err := results.round(s, name, spans, o.least); err != nil {
					return fmt.Errorf("measure %s, %s: %w", s.name, name, err)
				}
			}
		}
	}
	if err := results.print(out); err != nil {
		return err
	}
	fmt.Fprintln(out)
	return results.printBudgets(out)
}

// drawn is the number of spans in a round, which counts them repeatedly until its time is over.
// Those of adversarial are counted once, because afterwards their keys would be known.
const drawn = 1 << 16

// draw returns the spans that every system counts.
func draw(name string) ([]workload.Snapshot, error) {
	generator, err := workload.New(name, 1)
	if err != nil {
		return nil, err
	}
	spans := make([]workload.Snapshot, drawn)
	generator.Fill(spans, time.Now().UnixNano())
	return spans, nil
}
