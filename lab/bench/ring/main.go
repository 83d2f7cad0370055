// Ring measures the cost of moving a 112-byte snapshot from several producers to one consumer:
// through this project's ring, in runs of 1, 16 and 64, compared with a buffered channel of
// structs, a channel of pointers to newly allocated objects, and xsync's queue.
//
// The rounds of all contestants are interleaved, so that other load on the machine affects all
// of them, and each figure is the median of its rounds. There are two figures per slot: wall
// time, and CPU time of all threads, including kernel and garbage collection. Publish-only
// fills an empty queue without a consumer and measures the producers' own time. End to end is
// from the first put to the last take. Absolute times are not comparable between machines; the
// ratio in the last line is.
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

// run measures all contestants and prints the table.
func run(out io.Writer, o options) error {
	if o.rounds < 1 {
		return fmt.Errorf("read flags: %d rounds; use at least 1", o.rounds)
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
