// Balance measures the gain of balancing load over the drainers: it compares the initial
// routing by hash with the routing of the balancer, on uneven loads.
//
// There are two loads: the one of a comparable daemon's benchmark (100 keys, some of which are
// 24 times as frequent as others), and skewed (one of 100 keys has 60 % of all items). Each
// item costs its drainer 500 steps of a linear congruential generator, about half a
// microsecond, so that the drainers are the bottleneck. 16 producers wait when a ring is full.
// Static and balanced alternate in turns of a quarter of a window, so that other load on the
// machine affects both; the gain is the median over these pairs. The first seconds, in which
// the balancer sees the load for the first time, are not counted. The load ratio is the number
// of items of the busiest drainer divided by those of the idlest. Absolute figures are not
// comparable between machines. The last line of each case is the result to compare.
//
// The gain is one of wall time. There is none if the processors, not the busiest drainer, are
// the bottleneck: with more drainers than cores, or on a busy machine. Therefore the output
// also has the computed gain with one core per drainer, where the busiest drainer's share is
// the bottleneck. With -wait=4us drainers wait for the duration of an item instead of
// computing. Then each drainer has its own time, as if it had its own core, and this gain is
// measured.
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
		return fmt.Errorf("read flags: the window, and the numbers of windows and of producers, must be above 0")
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
