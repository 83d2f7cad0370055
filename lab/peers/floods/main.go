// Floods measures the cost of floods of unique keys, in each shape of package workload, and
// their effect on other keys.
//
// Costs are CPU time per span, as medians of interleaved rounds: of the complete daemon, as a
// separate process that reads from a socket with GOMEMLIMIT=64MiB; of a process with the
// agent's own code, which does the same from the bytes in its socket to the encoded payload;
// and of the agent's code between decoding and flushing, on spans in memory. The tables also
// contain the daemon's allocations and the peak of its resident set.
//
// The effect on other keys is measured with regular keys that recur with the frequencies of
// Zipf's law: how many of those that occurred at least three times in each of ten intervals had
// their own row in all of them. This part uses only a publisher and the registry, with a
// simulated clock (see clock.go), so that it does not take ten intervals of ten seconds. Each
// figure is the worse result of two rates.
//
// The last line contains the lowest ratio of the shapes that an application can generate, and
// that of the hostile ones.
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
	var shapes string
	var isAgent bool
	flag.IntVar(&o.rounds, "rounds", 3, "rounds of each cost")
	flag.DurationVar(&o.least, "time", time.Second, "how long the daemon is flooded in a round")
	flag.StringVar(&shapes, "shapes", strings.Join(workload.Shapes(), ","), "shapes, separated by commas")
	flag.StringVar(&o.program, "program", "../../bin/spanstatsd-lab",
		"the program that measures the daemon next to it")
	flag.IntVar(&o.slow, "slow", 2_000, "the lower rate at which names are looked at, in spans a second")
	flag.IntVar(&o.fast, "fast", 100_000, "the higher rate, not of hostile shapes; 0: none")
	flag.StringVar(&o.names, "names", "", "measure only names, and write them to this file: what this "+
		"program starts itself for")
	flag.BoolVar(&isAgent, "whole", false, "count what comes by the input with the agent's code: what this "+
		"program starts itself for")
	flag.Parse()
	o.shapes = strings.Split(shapes, ",")
	if isAgent {
		exitOn(beAgent())
		return
	}
	if o.names != "" {
		beTest(&o)
	}
	exitOn(run(os.Stdout, &o))
}

// exitOn exits if err is not nil.
func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench floods:", err)
		os.Exit(1)
	}
}

// run measures everything and prints the tables.
func run(out io.Writer, o *options) error {
	for _, shape := range o.shapes {
		if _, err := workload.New(workload.Flood(shape, whole), 0); err != nil {
			return fmt.Errorf("read -shapes: %w", err)
		}
	}
	if o.rounds < 1 || o.slow < 1 {
		return fmt.Errorf("read -rounds and -slow: %d and %d; use at least 1", o.rounds, o.slow)
	}
	fmt.Fprintf(out, "%d rounds of %s, GOMAXPROCS %d\n\n", o.rounds, o.least, runtime.GOMAXPROCS(0))
	costs, err := measureCosts(o)
	if err != nil {
		return err
	}
	names, err := measureNames()
	if err != nil {
		return err
	}
	if err := printTable(out, o.shapes, costs, names); err != nil {
		return err
	}
	inMemory, _ := worstRatio(o.shapes, false, costs, pathRatio)
	worst, of := worstRatio(o.shapes, false, costs, ratio)
	hostile, _ := worstRatio(o.shapes, true, costs, ratio)
	_, err = fmt.Fprintf(out, "\nthe agent's own path in memory: worst ratio %.1fx\nfloods: worst ratio "+
		"%.1fx of %d shapes, hostile %.1fx; honest keys kept %.1f %%\n", inMemory, worst, of, hostile,
		100*names.ofAll())
	if err != nil {
		return fmt.Errorf("write figures: %w", err)
	}
	return nil
}
