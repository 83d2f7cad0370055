// Flush measures the cost of encoding the payloads of 2048 sealed aggregates, with one, twenty
// and two hundred spans each: with this project's merge and encoder, and with the agent's own
// code, the SpanConcentrator that its Go tracer embeds, as that tracer sends it.
//
// The rounds of both are interleaved, so that other load on the machine affects both, and each
// figure is the median of its rounds. Filling is not measured. Before the first round, both
// payloads are decoded with the agent's generated decoder and compared: they must have the same
// groups, counts, and sketch bins. CPU time is that of all threads, including garbage
// collection. Absolute times are not comparable between machines; ratios are.
//
// A second table compares OTLP metrics, uncompressed, with the OpenTelemetry Collector: with
// its spanmetrics connector, which has counted the same spans in exponential histograms,
// followed by the encoder of its otlphttp exporter; and with that encoder alone, whose input is
// our data, already converted to the Collector's messages. Before the first round, the
// encoder's output must contain the same data as ours, and the connector must have the same
// number of spans and the same total duration in each series.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	rounds := flag.Int("rounds", 9, "rounds of each figure")
	flag.Parse()
	if err := run(os.Stdout, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "bench flush:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, rounds int) error {
	if rounds < 1 {
		return fmt.Errorf("read flags: %d rounds; use at least 1", rounds)
	}
	fmt.Fprintf(out, "%d aggregates, one span in twenty failed, medians of %d rounds\n\n", aggregates, rounds)
	fmt.Fprintln(out, "| durations | spans | CPU ms, ours | the agent's | times | allocations, ours | the "+
		"agent's | payload KB, ours | the agent's |")
	fmt.Fprintln(out, "| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	for w := range works {
		if err := compare(w); err != nil {
			return fmt.Errorf("compare payloads of %d spans, %s: %w", w.spans, w.shape.name, err)
		}
		costs, err := compareCosts(rounds, plainly(w.ours), plainly(w.agents))
		if err != nil {
			return err
		}
		report(out, w, costs[0], costs[1])
	}
	return runOTLP(out, rounds)
}

// works iterates over all workloads.
func works(yield func(*work) bool) {
	for _, shape := range shapes {
		for _, spans := range []int{1, 20, 200} {
			if !yield(newWork(shape, spans)) {
				return
			}
		}
	}
}

func runOTLP(out io.Writer, rounds int) error {
	fmt.Fprintln(out, "\n| OTLP: durations | spans | CPU ms, ours | connector and exporter | times | "+
		"exporter alone | allocations, ours | connector and exporter | exporter alone | request KB, ours | "+
		"the connector's |")
	fmt.Fprintln(out, "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	for plain := range works {
		w, err := newOTLPWork(plain)
		if err != nil {
			return err
		}
		if err := compareOTLP(w); err != nil {
			return fmt.Errorf("compare requests of %d spans, %s: %w", w.spans, w.shape.name, err)
		}
		requests := w.ours()()
		costs, err := compareCosts(rounds, plainly(w.ours), w.connector,
			plainly(func() func() [][]byte { return w.encoded(requests) }))
		if err != nil {
			return err
		}
		ours, connector, exporter := costs[0], costs[1], costs[2]
		fmt.Fprintf(out, "| %s | %d | %.2f | %.2f | %.1f | %.2f | %.0f | %.0f | %.0f | %.0f | %.0f |\n",
			w.shape.name, w.spans,
			ours.cpu, connector.cpu, connector.cpu/ours.cpu, exporter.cpu,
			ours.allocations, connector.allocations, exporter.allocations, ours.bytes/1e3,
			connector.bytes/1e3)
	}
	return nil
}

// side fills one of the compared implementations, and returns its flush.
type side func() (flush func() [][]byte, err error)

// plainly returns a side whose filling cannot fail.
func plainly(fill func() func() [][]byte) side {
	return func() (func() [][]byte, error) { return fill(), nil }
}

// compareCosts runs the flushes of all sides in turns, and returns the median of each.
func compareCosts(rounds int, sides ...side) (medians []sample, err error) {
	samples := make([][]sample, len(sides))
	for range rounds {
		for i, fill := range sides {
			flush, err := fill()
			if err != nil {
				return nil, err
			}
			s, err := measured(flush)
			if err != nil {
				return nil, err
			}
			samples[i] = append(samples[i], s)
		}
	}
	for _, all := range samples {
		medians = append(medians, median(all))
	}
	return medians, nil
}

func report(out io.Writer, w *work, ours, agents sample) {
	fmt.Fprintf(out, "| %s | %d | %.2f | %.2f | %.1f | %.0f | %.0f | %.0f | %.0f |\n", w.shape.name, w.spans,
		ours.cpu, agents.cpu, agents.cpu/ours.cpu, ours.allocations, agents.allocations, ours.bytes/1e3,
		agents.bytes/1e3)
}
