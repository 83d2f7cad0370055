// Balance measures what levelling the drainers gains: the routing as it is dealt
// by hash against the one that the balancer makes of it, on loads that are not even.
//
// The two loads are those of a peer's own benchmark (100 types, of which some
// come 24 times as often as others) and skewed (one of 100 keys is 60 % of all).
// Each item costs its drainer 500 steps of a linear congruential generator, some
// half a microsecond, so that the drainers are what limits; 16 producers wait
// when a ring is full. Static and balanced take turns of a quarter of a window, so
// that what else the machine does meets both; the gain is the median of those
// pairs. The first seconds, in which the balancer sees the load for the first time,
// are not counted. The load ratio is the items of the busiest drainer over those of
// the idlest. Absolute figures do not travel between machines. The last line of each
// case says what counts.
//
// The gain is one of wall time, and there is none to be had where the processors
// are the limit and not the busiest drainer: with more drainers than cores, or on a
// machine that others use. So beside it stands the gain that a core for each
// drainer would give, computed: the busiest one's share is then what limits. With
// -wait=4us an item's cost is waited for instead of worked, so that every drainer
// has its own time as it would have its own core, and that gain is measured.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"
)

func main() {
	var o options
	flag.DurationVar(&o.window, "window", 2*time.Second, "length of a window")
	flag.IntVar(&o.windows, "windows", 10, "windows of each side")
	flag.IntVar(&o.work, "work", 500, "steps of the generator an item")
	flag.DurationVar(&o.wait, "wait", 0, "let an item cost so much waiting instead of work")
	flag.IntVar(&o.producers, "producers", 16, "goroutines that send")
	flag.Parse()
	if err := run(os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "bench balance:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, o options) error {
	if o.windows < 1 || o.window <= 0 || o.work < 0 || o.producers < 1 {
		return fmt.Errorf("read flags: give a window, a number of windows and of producers above 0")
	}
	fmt.Fprintf(out, "%s a window, %d windows a side, GOMAXPROCS %d\n", o.window, o.windows,
		runtime.GOMAXPROCS(0))
	for _, drainers := range []int{4, 2} {
		for _, l := range loads {
			if err := compare(out, o, l, drainers); err != nil {
				return err
			}
		}
	}
	return nil
}
