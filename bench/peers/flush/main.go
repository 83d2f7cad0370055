// Flush measures what it costs to make a payload of 2048 sealed aggregates, with
// one, twenty and two hundred spans each: through this project's merge and
// encoding, and through the agent's own code, the SpanConcentrator that its Go
// tracer embeds, as that tracer sends it.
//
// Rounds of both are interleaved, so that what else the machine does meets both,
// and each figure is the median of its rounds. Filling is not measured. Before the
// first round, both payloads are decoded with the agent's generated decoder and
// compared: the same groups, the same counts, the same sketches bin for bin. CPU
// time is of all threads, so the collector's work is in it. Absolute times do not
// travel between machines; ratios do.
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

const aggregates = 2048

func run(out io.Writer, rounds int) error {
	if rounds < 1 {
		return fmt.Errorf("read flags: %d rounds; give at least 1", rounds)
	}
	fmt.Fprintf(out, "%d aggregates, one span in twenty failed, medians of %d rounds\n\n", aggregates, rounds)
	fmt.Fprintln(out, "| durations | spans | CPU ms, ours | the agent's | times | allocations, ours | the agent's | payload KB, ours | the agent's |")
	fmt.Fprintln(out, "| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
	for _, shape := range shapes {
		for _, spans := range []int{1, 20, 200} {
			w := newWork(shape, spans)
			if err := compare(w); err != nil {
				return fmt.Errorf("compare payloads of %d spans, %s: %w", spans, shape.name, err)
			}
			ours, agents, err := compareCosts(w, rounds)
			if err != nil {
				return err
			}
			report(out, w, median(ours), median(agents))
		}
	}
	return nil
}

// compareCosts has both sides flush in turns.
func compareCosts(w *work, rounds int) (ours, agents []sample, err error) {
	for range rounds {
		for _, side := range []struct {
			fill    func() func() []byte
			samples *[]sample
		}{{w.ours, &ours}, {w.agents, &agents}} {
			s, err := measured(side.fill())
			if err != nil {
				return nil, nil, err
			}
			*side.samples = append(*side.samples, s)
		}
	}
	return ours, agents, nil
}

func report(out io.Writer, w *work, ours, agents sample) {
	fmt.Fprintf(out, "| %s | %d | %.2f | %.2f | %.1f | %.0f | %.0f | %.0f | %.0f |\n", w.shape.name, w.spans,
		ours.cpu, agents.cpu, agents.cpu/ours.cpu, ours.allocations, agents.allocations, ours.bytes/1e3, agents.bytes/1e3)
}
