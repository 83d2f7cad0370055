// Floods measures what floods of keys that come once cost, in each shape that package
// workload knows, and what they do to names.
//
// Costs are medians of interleaved rounds, in CPU time a span: of the whole daemon, which is a
// process of its own behind a socket with GOMEMLIMIT=64MiB; of a process with the agent's
// own code, which does the same from the bytes in its socket to the encoded payload; and of
// what lies there between decoding and flushing, on spans in memory. Beside them stand the
// daemon's allocations, and the largest that its resident set ever was.
//
// Names are looked at beside honest keys, of which each comes as often as Zipf's law says:
// which of those that came three times or more in each of ten intervals had a row of their
// own in all of them. A publisher and the registry decide that on a clock of their own, see
// clock.go, so that ten intervals of ten seconds take as long as their spans. Each figure is
// the worse of the two rates.
//
// The last line has the least ratio of the shapes that an application can produce, and that of
// the hostile ones.
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
		"the program that measures the daemon beside it")
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

// exitOn ends this process where something failed.
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
		return fmt.Errorf("read -rounds and -slow: %d and %d; give at least 1", o.rounds, o.slow)
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
