package bench

import (
	"fmt"
	"strings"
	"time"

	"github.com/spanstatsd/spanstatsd/lab/bench/measure"
)

// progress writes a line about the running measurement at each interval.
type progress struct {
	run    *run
	ticker *time.Ticker // nil: no progress lines
	last   reading
}

func newProgress(r *run) *progress {
	p := &progress{run: r, ticker: &time.Ticker{}, last: r.before}
	if r.config.Every > 0 {
		p.ticker = time.NewTicker(r.config.Every)
		fmt.Fprintf(r.config.Out, "%6s %14s %9s %9s %11s  %s\n", "second", "accepted/s", "heap MiB",
			"RSS MiB", "collector", "drops and collapses a second")
	}
	return p
}

func (p *progress) end() {
	if p.ticker.C != nil {
		p.ticker.Stop()
		p.line()
		fmt.Fprintln(p.run.config.Out)
	}
}

// line writes what happened since the last line. It skips a daemon that does not respond,
// because that one might respond at the end.
func (p *progress) line() {
	now, err := p.run.read()
	if err != nil {
		return
	}
	used, err := measure.MemoryOf(p.run.target.pid)
	if err != nil {
		return
	}
	grown, spent := now.metrics.since(p.last.metrics), now.cpu.Minus(p.last.cpu)
	seconds := now.at.Sub(p.last.at).Seconds()
	fmt.Fprintf(p.run.config.Out, "%6.0f %14s %9.1f %9.1f %10.2f%%  %s\n",
		now.at.Sub(p.run.before.at).Seconds(),
		thousands(float64(now.accounting.Aggregated-p.last.accounting.Aggregated)/seconds),
		now.metrics["go_memstats_heap_inuse_bytes"]/(1<<20), float64(used.Resident)/(1<<20),
		100*grown[collectorSeconds]/spent.All.Seconds(), losses(grown, seconds))
	p.last = now
}

// losses describes the drops and collapses per second, if there were any.
func losses(grown metrics, seconds float64) string {
	described := happened("dropped ", grown.by("spanstatsd_spans_dropped_total"), seconds)
	return strings.Join(append(described, happened("collapsed ", grown.by("spanstatsd_spans_collapsed_total"),
		seconds)...), ", ")
}
