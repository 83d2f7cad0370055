// Otlp measures the cost of counting and forwarding requests of OpenTelemetry SDKs, recorded
// from real ones (package recorded), each starting from its bytes.
//
// The first table is about counting. Ours goes from the bytes through the rings into tables:
// parsing, publishers, and drainers. It is compared with the Collector's spanmetrics connector,
// with default configuration and with our labels: from the same bytes, which the Collector's
// library decodes first, into its histograms. No figure includes encoding and sending the
// results.
//
// The second table is about forwarding through complete daemons, which are separate processes,
// to a receiver in this process, all over TCP on loopback. A bare relay instead of the daemon
// (package relay) gives the minimum cost of transferring the bytes. The daemon has three loads:
// requests marked as counted by their sender, which it only forwards; the same without the
// mark, which it also counts; and those where --otlp-keep forwards one trace in twenty.
//
// All loads take turns within one run. Every figure is the median of the rounds, and CPU time
// of all threads, including kernel and garbage collection. The run fails unless all expected
// requests arrived complete, and all expected spans were counted.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spanstatsd/spanstatsd/lab/bench/recorded"
	"github.com/spanstatsd/spanstatsd/lab/bench/relay"
)

func main() {
	var o options
	var only string
	flag.IntVar(&o.rounds, "rounds", 7, "rounds of each figure")
	flag.DurationVar(&o.least, "time", 300*time.Millisecond, "how long a turn lasts at least")
	flag.StringVar(&only, "requests", strings.Join(recorded.Names, ","), "requests, separated by commas")
	flag.StringVar(&o.program, "program", "../../bin/spanstatsd", "the daemon's program")
	flag.StringVar(&o.table, "table", "", "only that table: counting, names, labels, forwarding")
	isRelay := flag.Bool("relay", false, "be the bare relay, which a run starts")
	flag.Parse()
	if *isRelay {
		exit(relay.Run(os.Stdin, os.Stdout))
	}
	o.requests = strings.Split(only, ",")
	exit(run(os.Stdout, o))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench otlp:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// run measures everything and prints the tables.
func run(out io.Writer, o options) error {
	if o.rounds < 1 {
		return fmt.Errorf("read flags: %d rounds; use at least 1", o.rounds)
	}
	var requests []*recorded.Request
	for _, name := range o.requests {
		r, err := recorded.Load(name)
		if err != nil {
			return err
		}
		requests = append(requests, r)
	}
	tables := []struct {
		name  string
		print func() error
	}{
		{"counting", func() error { return compareCounting(out, o, requests) }},
		{"names", func() error { return compareNames(out, requests) }},
		{"labels", func() error { return compareLabels(out, requests) }},
		{"forwarding", func() error { return compareForwarding(out, o, requests) }},
	}
	for _, t := range tables {
		if o.table != "" && o.table != t.name {
			continue
		}
		if err := t.print(); err != nil {
			return fmt.Errorf("compare %s: %w", t.name, err)
		}
		fmt.Fprintln(out)
	}
	return nil
}
