// Ring measures what it costs to move a 112-byte snapshot from several
// producers to one consumer: through this project's ring, in runs of 1, 16 and
// 64, beside a buffered channel of structs, a channel of pointers to fresh
// objects, and xsync's queue.
//
// Rounds of all contestants are interleaved, so that what else the machine does
// meets all of them, and each figure is the median of its rounds. Two are given
// for each: wall time and CPU time (all threads, kernel and collector included)
// a slot. Publish-only fills an empty queue with nobody taking and gives the
// producers' own time; end to end is from the first put to the last take.
// Absolute times do not travel between machines. The last line does.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
)

func main() {
	var o options
	flag.IntVar(&o.slots, "slots", 8192, "size of each queue end to end, a power of two")
	flag.IntVar(&o.fill, "fill", 65536, "size of each queue, publish only, a power of two")
	flag.IntVar(&o.rounds, "rounds", 7, "rounds of each figure")
	flag.Parse()
	if err := run(os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench ring:", err)
		os.Exit(1)
	}
}

// run measures everything and prints the table.
func run(out io.Writer, o options) error {
	if o.rounds < 1 {
		return fmt.Errorf("read flags: %d rounds; give at least 1", o.rounds)
	}
	fmt.Fprintf(out, "%d slots end to end, %d publish only, %d rounds, GOMAXPROCS %d\n\n",
		o.slots, o.fill, o.rounds, runtime.GOMAXPROCS(0))
	results := newResults(o.rounds)
	for range o.rounds {
		for _, count := range producers {
			for i := range contestants {
				if err := results.round(i, count, o); err != nil {
					return fmt.Errorf("measure %s, %d producers: %w", contestants[i].name, count, err)
				}
			}
		}
	}
	return results.print(out)
}
