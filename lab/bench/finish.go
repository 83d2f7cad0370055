package bench

import (
	"fmt"

	"github.com/spanstatsd/spanstatsd/lab/bench/measure"
)

func (r *run) newReport() *Report {
	report := &Report{Load: r.config.Load, Refused: map[string]uint64{}, Faults: []string{}}
	if r.config.KeyCount > 0 {
		report.Workload = fmt.Sprintf("%d keys", r.config.KeyCount)
	}
	return report
}

// finish stops the daemon. It adds to the report the outcomes of the spans, their costs, and
// whether the agent counted the same number.
func (r *run) finish(after *reading, cost *costs) error {
	r.addCounts(r.report, after)
	if err := r.addCosts(r.report, cost); err != nil {
		return err
	}
	if err := r.target.stop(); err != nil {
		r.report.fault(err)
	}
	if r.target.agent != nil {
		totals := r.target.agent.Totals()
		equal := totals.Hits == r.report.SpansAccepted
		r.report.AgentHits, r.report.HitsEqualAccepted = &totals.Hits, &equal
		r.report.Faults = append(r.report.Faults, totals.Problems...)
	}
	return nil
}

func (r *run) addCounts(report *Report, after *reading) {
	grown := after.metrics.since(r.before.metrics)
	report.Accounting = accountingSince(&after.accounting, &r.before.accounting)
	report.Dropped = grown.by("spanstatsd_spans_dropped_total")
	report.Collapsed = grown.by("spanstatsd_spans_collapsed_total")
	report.SpansAccepted = report.Accounting.Aggregated
	report.SpansAcceptedPerSecond = float64(report.SpansAccepted) / report.Seconds
	report.SpansAttemptedPerSecond = float64(report.SpansAttempted) / report.Seconds
	ages := newLatencies()
	ages.addHistogram(grown.histogram("spanstatsd_span_age_seconds"))
	ages.Longest = after.metrics["spanstatsd_span_age_max_seconds"] * 1e9
	report.PublishToTable = ages.times()
	report.Flushes = uint64(grown["spanstatsd_flush_seconds_count"])
	if report.Flushes > 0 {
		report.FlushMean = grown["spanstatsd_flush_seconds_sum"] / float64(report.Flushes)
	}
}

// costs accumulates the daemon's costs between pairs of readings.
type costs struct {
	grown      metrics
	cpu        measure.CPU
	aggregated uint64
	seconds    float64
}

func (c *costs) add(before, after *reading) {
	if c.grown == nil {
		c.grown = metrics{}
	}
	for name, value := range after.metrics.since(before.metrics) {
		c.grown[name] += value
	}
	c.cpu = c.cpu.Plus(after.cpu.Minus(before.cpu))
	c.aggregated += after.accounting.Aggregated - before.accounting.Aggregated
	c.seconds += after.at.Sub(before.at).Seconds()
}

func (r *run) addCosts(report *Report, c *costs) error {
	if spans := float64(c.aggregated); spans > 0 {
		report.DaemonCPU = float64(c.cpu.All) / spans
		report.DaemonSystemCPU = float64(c.cpu.System) / spans
		report.DaemonAllocs = c.grown[mallocs] / spans
		report.DaemonAllocBytes = c.grown["go_memstats_alloc_bytes_total"] / spans
	}
	report.DaemonGCCycles = uint64(c.grown["go_gc_duration_seconds_count"])
	report.DaemonGCSeconds = c.grown[collectorSeconds]
	report.DaemonGCShare = c.grown[collectorSeconds] / c.cpu.All.Seconds()
	report.DaemonCores = c.cpu.All.Seconds() / c.seconds
	used, err := measure.MemoryOf(r.target.pid)
	report.DaemonPeakRSS = used.Peak
	return err
}

const (
	mallocs          = "go_memstats_mallocs_total"
	collectorSeconds = "go_cpu_classes_gc_total_cpu_seconds_total"
)
