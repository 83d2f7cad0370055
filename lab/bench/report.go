package bench

import (
	"fmt"

	"github.com/spanstatsd/spanstatsd/internal/health"
	"github.com/spanstatsd/spanstatsd/lab/bench/measure"
)

// Report is what a run found. Its names in JSON are stable, and stand in
// docs/benchmarks.md with their meaning.
type Report struct {
	Load
	Seconds float64 `json:"seconds"`

	SpansAttempted          uint64            `json:"spans_attempted"`
	SpansAttemptedPerSecond float64           `json:"spans_attempted_per_second"`
	SpansAccepted           uint64            `json:"spans_accepted"`
	SpansAcceptedPerSecond  float64           `json:"spans_accepted_per_second"`
	Refused                 map[string]uint64 `json:"refused"`
	Dropped                 map[string]uint64 `json:"dropped"`
	Collapsed               map[string]uint64 `json:"collapsed"`

	DaemonCPU         float64 `json:"daemon_cpu_ns_per_span"`
	DaemonSystemCPU   float64 `json:"daemon_system_cpu_ns_per_span"`
	TracerCPU         float64 `json:"tracer_cpu_ns_per_span"`
	DaemonAllocs      float64 `json:"daemon_allocs_per_span"`
	DaemonAllocBytes  float64 `json:"daemon_alloc_bytes_per_span"`
	DaemonPeakRSS     uint64  `json:"daemon_peak_rss_bytes"`
	DaemonGCCycles    uint64  `json:"daemon_gc_cycles"`
	DaemonGCSeconds   float64 `json:"daemon_gc_cpu_seconds"`
	DaemonGCShare     float64 `json:"daemon_gc_cpu_share"`
	DaemonCores       float64 `json:"daemon_cores"`
	PublishToTable    Times   `json:"publish_to_table"`
	Publish           Times   `json:"publish"`
	Flushes           uint64  `json:"flushes"`
	FlushMean         float64 `json:"flush_mean_seconds"`
	FlushAnswer       float64 `json:"flush_answer_seconds"`
	Books             Books   `json:"books"`
	AgentHits         *uint64 `json:"agent_hits"`
	HitsEqualAccepted *bool   `json:"hits_equal_accepted"`

	Traces *TracesReport `json:"traces"`

	Faults []string `json:"faults"`
}

// Books are the daemon's for this run alone.
type Books struct {
	Received   uint64 `json:"received"`
	Aggregated uint64 `json:"aggregated"`
	Dropped    uint64 `json:"dropped"`
	Flushed    uint64 `json:"flushed"`
	Unsent     uint64 `json:"unsent"`
	Held       uint64 `json:"held"`
	Balanced   bool   `json:"balanced"`
}

// booksSince takes what was there before away from the daemon's. Held is what
// it holds now.
func booksSince(now, before *health.Books) Books {
	return Books{
		Received: now.Received - before.Received, Aggregated: now.Aggregated - before.Aggregated,
		Dropped: now.DroppedTotal() - before.DroppedTotal(), Flushed: now.Flushed - before.Flushed,
		Unsent: now.Unsent - before.Unsent, Held: now.Held, Balanced: now.Balanced,
	}
}

// Holds says whether nothing was lost out of the books.
func (r *Report) Holds() bool {
	return r.Books.Balanced && len(r.Faults) == 0 && (r.HitsEqualAccepted == nil || *r.HitsEqualAccepted) &&
		(r.Traces == nil || r.Traces.AllAccounted)
}

func (r *Report) fault(err error) { r.Faults = append(r.Faults, err.Error()) }

func (r *run) newReport() *Report {
	report := &Report{Load: r.config.Load, Refused: map[string]uint64{}, Faults: []string{}}
	if r.config.KeyCount > 0 {
		report.Workload = fmt.Sprintf("%d keys", r.config.KeyCount)
	}
	return report
}

func (r *Report) addTracers(did *result) {
	r.SpansAttempted, r.Refused, r.Publish = did.Attempted, did.Refused, did.Publish.times()
	if did.Handed > 0 {
		r.TracerCPU = float64(did.CPU) / float64(did.Handed)
	}
}

// finish ends the daemon, and takes in what became of the spans, what they cost, and
// whether the agent has counted as many.
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
	report.Books = booksSince(&after.books, &r.before.books)
	report.Dropped = grown.by("spanstatsd_spans_dropped_total")
	report.Collapsed = grown.by("spanstatsd_spans_collapsed_total")
	report.SpansAccepted = report.Books.Aggregated
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

// costs are what the daemon spent between pairs of readings.
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
	c.aggregated += after.books.Aggregated - before.books.Aggregated
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
