// Scraping measures what a scrape of the daemon costs, beside client_golang's own of the same
// series: 8192 of them, each with a counter, a native histogram and classic buckets, of twenty
// and of two hundred spans.
//
// On our side it is the exporter's handler, whose totals stand in memory; on the other promhttp's,
// of a registry with vectors of counters and histograms that have observed the same durations, and
// its encoder alone, of the messages that the registry has made before. The columns say how many
// times their cost ours is. Nothing is sent: whoever asks throws away what it gets. Before the
// first round both answers are decoded and compared: the same series with the same labels, counts,
// sums and buckets.
//
// Rounds of all sides are interleaved, so that what else the machine does meets all of them, and
// each figure is the median of its rounds. CPU time is of all threads, the collector's work
// included. A second table says how long a flush takes that adds a cycle with all series to the
// totals, by itself and while two scrape that do not read what they asked for. Absolute times do
// not travel between machines; ratios do.
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
		return fmt.Errorf("read flags: %d rounds; give at least 1", rounds)
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

// report measures one form of answer.
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

// reportFlushes says how long a flush takes while scrapes hang.
func reportFlushes(out io.Writer, rounds int, works []*work) error {
	fmt.Fprintln(out, "\n| a flush of all series, spans each | CPU ms | wall ms | wall ms, two scrapes "+
		"hanging | times |")
	fmt.Fprintln(out, "| --- | --- | --- | --- | --- |")
	for _, w := range works {
		alone, beside, err := flushes(rounds, w)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "| %d | %.1f | %.1f | %.1f | %.2f |\n", w.spans, alone.cpu, alone.wall, beside.wall,
			beside.wall/alone.wall)
	}
	return nil
}
