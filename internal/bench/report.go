package bench

import (
	"github.com/spanstatsd/spanstatsd/internal/health"
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
