package bench

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"
)

// WriteText shows a report to a person.
func (r *Report) WriteText(w io.Writer) {
	rate := "as fast as it goes"
	if r.Rate > 0 {
		rate = thousands(r.Rate) + " spans/s wanted"
	}
	fmt.Fprintf(w, "%s, %s\n\n", r.title(), rate)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-17s %s\n", name, fmt.Sprintf(format, args...))
	}
	row("accepted", "%s spans/s: %s in %.1f s", thousands(r.SpansAcceptedPerSecond), thousands(float64(r.SpansAccepted)), r.Seconds)
	row("attempted", "%s spans/s", thousands(r.SpansAttemptedPerSecond))
	if r.Traces != nil {
		r.Traces.write(row)
	} else {
		row("daemon CPU", "%.1f ns a span, %.1f of it in the kernel; %.2f cores", r.DaemonCPU, r.DaemonSystemCPU, r.DaemonCores)
		row("tracer CPU", "%.1f ns a span", r.TracerCPU)
		row("daemon allocates", "%.5f times and %.2f B a span", r.DaemonAllocs, r.DaemonAllocBytes)
		row("publish", "%s", r.Publish)
	}
	row("daemon memory", "%.1f MiB at its peak", float64(r.DaemonPeakRSS)/(1<<20))
	row("collector", "%d cycles, %.3f s, %.2f %% of the daemon's CPU", r.DaemonGCCycles, r.DaemonGCSeconds, 100*r.DaemonGCShare)
	row("publish to table", "%s", r.PublishToTable)
	row("flush", "%d, %s each; the last was answered after %s", r.Flushes, seconds(r.FlushMean), seconds(r.FlushAnswer))
	for _, kind := range []struct {
		name   string
		counts map[string]uint64
	}{{"refused by client", r.Refused}, {"dropped", r.Dropped}, {"collapsed", r.Collapsed}} {
		for _, reason := range slices.Sorted(maps.Keys(kind.counts)) {
			if n := kind.counts[reason]; n > 0 {
				row(kind.name, "%s: %s", reason, thousands(float64(n)))
			}
		}
	}
	b := &r.Books
	row("books", "received %d = aggregated %d + dropped %d; aggregated = flushed %d + unsent %d + held %d; balanced: %v",
		b.Received, b.Aggregated, b.Dropped, b.Flushed, b.Unsent, b.Held, b.Balanced)
	if r.AgentHits != nil {
		row("agent", "%d hits, equal to accepted: %v", *r.AgentHits, *r.HitsEqualAccepted)
	}
	for _, fault := range r.Faults {
		row("fault", "%s", fault)
	}
}

// String is the quantiles of some times.
func (t Times) String() string {
	return fmt.Sprintf("p50 %s, p99 %s, p99.9 %s, longest %s of %s samples", nanoseconds(t.P50), nanoseconds(t.P99),
		nanoseconds(t.P999), nanoseconds(t.Longest), thousands(float64(t.Samples)))
}

func nanoseconds(ns float64) string {
	d := time.Duration(ns)
	for unit := time.Duration(1); ; unit *= 10 {
		if d < 1000*unit {
			return d.Round(unit).String()
		}
	}
}

func seconds(s float64) string { return nanoseconds(s * 1e9) }

// thousands groups the digits of a whole number.
func thousands(n float64) string {
	digits := strconv.FormatFloat(n, 'f', 0, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + " " + digits[i:]
	}
	return digits
}

// title says what was sent.
func (r *Report) title() string {
	if r.Traces != nil {
		return fmt.Sprintf("workload %s, %d tracers with %d connections", r.Workload, r.Producers, r.Connections)
	}
	return fmt.Sprintf("workload %s, %s keys, batches of %d, %d %s tracers with %d connections of %d origins",
		r.Workload, r.Keys, r.Batch, r.Producers, r.Tracer, r.Connections, r.Origins)
}
