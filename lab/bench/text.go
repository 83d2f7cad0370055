package bench

import (
	"fmt"
	"io"
	"slices"
)

// costs returns the figures of every table.
func (r *Report) costs() []fact {
	return []fact{
		{"accepted/s", thousands(r.SpansAcceptedPerSecond)},
		{"dropped", thousands(float64(r.Accounting.Dropped))},
		{"daemon CPU ns", integer(r.DaemonCPU)},
		{"in the kernel", integer(r.DaemonSystemCPU)},
		{"tracer CPU ns", integer(r.TracerCPU)},
		{"allocations", fmt.Sprintf("%.4f", r.DaemonAllocs)},
		{"peak MiB", integer(float64(r.DaemonPeakRSS) / (1 << 20))},
	}
}

// times returns the additional figures of the table of all workloads.
func (r *Report) times() []fact {
	return []fact{
		{"collector", fmt.Sprintf("%.2f %%", 100*r.DaemonGCShare)},
		{"to table, p50 / p99", r.PublishToTable.pair()},
		{"publish, p50 / p99", r.Publish.pair()},
	}
}

// facts returns the figures of recorded requests.
func (t *TracesReport) facts() []fact {
	return []fact{
		{"requests", t.Format},
		{"spans each", fmt.Sprint(t.SpansPerRequest)},
		{"counted", fmt.Sprint(t.CountedPerRequest)},
		{"bytes a span", integer(t.BytesPerSpan)},
		{"a bare relay, CPU ns", integer(t.Relay.CPU)},
		{"forwarding", integer(t.Proxied.CPU)},
		{"times the relay", fmt.Sprintf("%.2f", t.TimesRelay)},
		{"forwarding and counting", integer(t.Counted.CPU)},
		{"counting adds", integer(t.Counting.AddedCPU)},
		{"decoding and rules alone", integer(t.Counting.CPU)},
		{"times that", fmt.Sprintf("%.2f", t.TimesWalk)},
		{"counting alone", integer(t.Counting.WholeCPU)},
		{"times that", fmt.Sprintf("%.2f", t.TimesWhole)},
		{"allocations of counting", fmt.Sprintf("%.4f", t.Counting.Allocs)},
		{"daemon, CPU ms a second", fmt.Sprintf("%.1f / %.1f", t.Proxied.CPUPerSecond/1e6,
			t.Counted.CPUPerSecond/1e6)},
		{"response, p50 / p99", t.Proxied.Answer.pair()},
		{"with counting, p50 / p99", t.Counted.Answer.pair()},
		{"forwarded uncounted", fmt.Sprint(t.LeftToAgent)},
	}
}

// WriteText writes a report in human-readable form.
func (r *Report) WriteText(w io.Writer) {
	facts := append(r.costs(), r.times()...)
	if r.Traces != nil {
		facts = append(facts, r.Traces.facts()...)
	}
	facts = append(facts, fact{"accepted", fmt.Sprintf("%s in %.1f s", thousands(float64(r.SpansAccepted)),
		r.Seconds)},
		fact{"attempted/s", thousands(r.SpansAttemptedPerSecond)}, fact{
			"cores",
			fmt.Sprintf("%.2f", r.DaemonCores),
		},
		fact{"flushes", fmt.Sprintf("%d, %s each; the response to the last took %s", r.Flushes,
			nanoseconds(r.FlushMean*1e9), nanoseconds(r.FlushAnswer*1e9))})
	for _, what := range slices.Concat(happened("refused by client ", r.Refused, 1),
		happened("dropped ", r.Dropped, 1), happened("collapsed ", r.Collapsed, 1)) {
		facts = append(facts, fact{"spans", what})
	}
	b := &r.Accounting
	facts = append(facts, fact{"accounting", fmt.Sprintf("received %d = aggregated %d + dropped %d; aggregated "+
		"= flushed %d + unsent %d + pending %d; balanced: %v",
		b.Received, b.Aggregated, b.Dropped, b.Flushed, b.Unsent, b.Pending, b.Balanced)})
	if r.AgentHits != nil {
		facts = append(facts, fact{"agent", fmt.Sprintf("%d hits, equal to accepted: %v", *r.AgentHits,
			*r.HitsEqualAccepted)})
	}
	for _, fault := range r.Faults {
		facts = append(facts, fact{"fault", fault})
	}
	for _, f := range facts {
		fmt.Fprintf(w, "%-25s %s\n", f.name, f.value)
	}
}

// pair formats the median and the 99th percentile.
func (t Times) pair() string { return nanoseconds(t.P50) + " / " + nanoseconds(t.P99) }
