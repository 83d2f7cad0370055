// Peers measures what it costs to count a span: the Datadog agent's own
// concentrator, the OpenTelemetry spanmetrics connector, and this daemon, on
// identical spans, in turns within one run.
//
// Every figure is CPU time of all threads, kernel and garbage collector
// included, divided by the spans that were counted, and the median of the
// rounds. The peers are called as a library, with everything prepared that they
// would get prepared; making and sending the results is in no figure of theirs.
// Ours is the whole daemon, as spanstatsd-lab bench measures it: a process of its own behind
// a socket, flushing included.
//
// The first table says of each system how many times the cost of the whole daemon its is.
// The second table holds the agent's own path over ours against the budgets
// of this project. Absolute times do not travel between machines, ratios nearly do.
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
		"the program that measures the daemon beside it")
	flag.Parse()
	o.workloads = strings.Split(names, ",")
	if err := run(os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench peers:", err)
		os.Exit(1)
	}
}

// run measures everything and prints the table.
func run(out io.Writer, o options) error {
	if o.rounds < 1 {
		return fmt.Errorf("read flags: %d rounds; give at least 1", o.rounds)
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

// drawn is how many spans a round has, which it repeats until its time is over;
// those of adversarial are counted once, for afterwards they would be known.
const drawn = 1 << 16

// draw makes the spans that every system counts.
func draw(name string) ([]workload.Snapshot, error) {
	generator, err := workload.New(name, 1)
	if err != nil {
		return nil, err
	}
	spans := make([]workload.Snapshot, drawn)
	generator.Fill(spans, time.Now().UnixNano())
	return spans, nil
}
