// Scraping measures the cost of a scrape of the daemon, compared with client_golang for the
// same series: 8192 of them, each with a counter, a native histogram and classic buckets, of
// twenty and of two hundred spans.
//
// The daemon's side is the exporter's handler with its totals in memory. The other side is
// promhttp's handler with a registry whose counters and histograms have observed the same
// durations, and also its encoder alone, with messages that the registry created before. The
// columns give their cost as a multiple of the daemon's. No network is involved: the responses
// are discarded. Before the first round both responses are decoded and compared: they must have
// the same series with the same labels, counts, sums and buckets.
//
// The rounds of all sides are interleaved, so that other load on the machine affects all of
// them, and each figure is the median of its rounds. CPU time is that of all threads, including
// garbage collection. A second table gives the duration of a flush that adds a cycle with all
// series to the totals, alone and during two scrapes that do not read their responses. Absolute
// times are not comparable between machines; ratios are.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	rounds := flag.Int("rounds", 5, "rounds of each figure")
	flag.Parse()
	if err := run(os.Stdout, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "bench scraping:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, rounds int) error {
	if rounds < 1 {
		return fmt.Errorf("read flags: %d rounds; use at least 1", rounds)
	}
	fmt.Fprintf(out, "%d series, medians of %d rounds\n\n", allSeries, rounds)
	fmt.Fprintln(out, "| spans each | asked for | CPU ms, ours | promhttp's handler | ours, times that | "+
		"its encoder alone | ours, times that | allocations, ours | the handler's | answer MB, ours | "+
		"the handler's |")
	fmt.Fprintln(out, "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	var works []*work
	for _, spans := range []int{20, 200} {
		w, err := newWork(spans)
		if err != nil {
			return err
		}
		theirs, err := theirsLike(w)
		if err != nil {
			return err
		}
		for _, f := range forms {
			if err := report(out, rounds, f, w, theirs); err != nil {
				return err
			}
		}
		works = append(works, w)
	}
	return reportFlushes(out, rounds, works)
}

// report measures one response format.
func report(out io.Writer, rounds int, f form, w *work, theirs *theirs) error {
	if err := compare(f, w, theirs); err != nil {
		return fmt.Errorf("compare answers of %d spans, %s: %w", w.spans, f.name, err)
	}
	costs, err := medians(rounds,
		func() (int, error) { return scrape(w.exporter, f) },
		func() (int, error) { return scrape(theirs.handler, f) },
		func() (int, error) { return theirs.encode(f) })
	if err != nil {
		return err
	}
	ours, handler, encoder := costs[0], costs[1], costs[2]
	fmt.Fprintf(out, "| %d | %s | %.1f | %.1f | %.2f | %.1f | %.2f | %.0f | %.0f | %.2f | %.2f |\n",
		w.spans, f.name, ours.cpu, handler.cpu, ours.cpu/handler.cpu, encoder.cpu, ours.cpu/encoder.cpu,
		ours.allocations, handler.allocations, ours.bytes/1e6, handler.bytes/1e6)
	return nil
}

// reportFlushes measures the duration of a flush while scrapes hang.
func reportFlushes(out io.Writer, rounds int, works []*work) error {
	fmt.Fprintln(out, "\n| a flush of all series, spans each | CPU ms | wall ms | wall ms, two scrapes "+
		"hanging | times |")
	fmt.Fprintln(out, "| --- | --- | --- | --- | --- |")
	for _, w := range works {
		alone, duringScrapes, err := flushes(rounds, w)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "| %d | %.1f | %.1f | %.1f | %.2f |\n", w.spans, alone.cpu, alone.wall, duringScrapes.wall,
			duringScrapes.wall/alone.wall)
	}
	return nil
}
