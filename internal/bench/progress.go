package bench

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// progress says how a run goes: lines that stay, at the interval that was asked
// for, or one line of a terminal that each second overwrites.
type progress struct {
	run    *run
	ticker *time.Ticker // nil: nothing is said
	stays  bool
	last   reading
}

func newProgress(r *run) *progress {
	p := &progress{run: r, stays: r.config.Every > 0, last: r.before}
	switch {
	case p.stays:
		p.ticker = time.NewTicker(r.config.Every)
		fmt.Fprintf(r.config.Out, "%6s %14s %9s %9s %11s  %s\n", "second", "accepted/s", "heap MiB", "RSS MiB", "collector", "drops and collapses a second")
	case r.config.Screen != nil:
		p.ticker = time.NewTicker(time.Second)
	}
	return p
}

func (p *progress) ticks() <-chan time.Time {
	if p.ticker == nil {
		return nil
	}
	return p.ticker.C
}

// end says the last of it, or takes the terminal's line away.
func (p *progress) end(ctx context.Context) {
	if p.ticker == nil {
		return
	}
	p.ticker.Stop()
	if p.stays {
		p.line(ctx)
		fmt.Fprintln(p.run.config.Out)
	} else {
		fmt.Fprint(p.run.config.Screen, "\r\x1b[K")
	}
}

// line says what happened since the line before. A daemon that does not answer
// now may answer at the end.
func (p *progress) line(ctx context.Context) {
	now, err := p.run.read(ctx)
	if err != nil {
		return
	}
	used, err := memoryOf(p.run.target.pid)
	if err != nil {
		return
	}
	grown, spent := now.metrics.since(p.last.metrics), now.cpu.minus(p.last.cpu)
	seconds := now.at.Sub(p.last.at).Seconds()
	accepted := float64(now.books.Aggregated-p.last.books.Aggregated) / seconds
	at := now.at.Sub(p.run.before.at).Seconds()
	if p.stays {
		fmt.Fprintf(p.run.config.Out, "%6.0f %14s %9.1f %9.1f %10.2f%%  %s\n", at, thousands(accepted),
			now.metrics["go_memstats_heap_inuse_bytes"]/(1<<20), float64(used.resident)/(1<<20),
			100*grown[collectorSeconds]/spent.all.Seconds(), losses(grown, seconds))
	} else {
		fmt.Fprintf(p.run.config.Screen, "\r\x1b[K%.0f s: %s spans/s, daemon %.0f ns a span, %.0f MiB  %s", at, thousands(accepted),
			float64(spent.all)/max(accepted*seconds, 1), float64(used.resident)/(1<<20), losses(grown, seconds))
	}
	p.last = now
}

// losses are the drops and collapses that there were, a second.
func losses(grown metrics, seconds float64) string {
	var said []string
	for _, kind := range []struct{ metric, verb string }{
		{"spanstatsd_spans_dropped_total", "dropped"}, {"spanstatsd_spans_collapsed_total", "collapsed"},
	} {
		counts := grown.by(kind.metric)
		for _, name := range slices.Sorted(maps.Keys(counts)) {
			if counts[name] > 0 {
				said = append(said, fmt.Sprintf("%s %s %s", kind.verb, name, thousands(float64(counts[name])/seconds)))
			}
		}
	}
	return strings.Join(said, ", ")
}
