package bench

import (
	"github.com/spanstatsd/spanstatsd/internal/status"
)

// Report is the result of a run. Its JSON keys are stable and documented in docs/benchmarks.md.
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

	Costs

	PublishToTable    Times      `json:"publish_to_table"`
	Publish           Times      `json:"publish"`
	Flushes           uint64     `json:"flushes"`
	FlushMean         float64    `json:"flush_mean_seconds"`
	FlushAnswer       float64    `json:"flush_answer_seconds"`
	Accounting        Accounting `json:"accounting"`
	AgentHits         *uint64    `json:"agent_hits"`
	HitsEqualAccepted *bool      `json:"hits_equal_accepted"`

	Traces *TracesReport `json:"traces"`

	Faults []string `json:"faults"`
}

// Costs are the costs of a run's spans in the daemon, and where the name says so in the
// tracers.
type Costs struct {
	DaemonCPU        float64 `json:"daemon_cpu_ns_per_span"`
	DaemonSystemCPU  float64 `json:"daemon_system_cpu_ns_per_span"`
	TracerCPU        float64 `json:"tracer_cpu_ns_per_span"`
	DaemonAllocs     float64 `json:"daemon_allocs_per_span"`
	DaemonAllocBytes float64 `json:"daemon_alloc_bytes_per_span"`
	DaemonPeakRSS    uint64  `json:"daemon_peak_rss_bytes"`
	DaemonGCCycles   uint64  `json:"daemon_gc_cycles"`
	DaemonGCSeconds  float64 `json:"daemon_gc_cpu_seconds"`
	DaemonGCShare    float64 `json:"daemon_gc_cpu_share"`
	DaemonCores      float64 `json:"daemon_cores"`
}

// Accounting is the daemon's accounting of this run.
type Accounting struct {
	Received   uint64 `json:"received"`
	Aggregated uint64 `json:"aggregated"`
	Dropped    uint64 `json:"dropped"`
	Flushed    uint64 `json:"flushed"`
	Unsent     uint64 `json:"unsent"`
	Pending    uint64 `json:"pending"`
	Balanced   bool   `json:"balanced"`
}

// accountingSince returns the difference of two readings of the daemon's accounting. Pending is not a
// difference: it is the current value.
func accountingSince(now, before *status.Accounting) Accounting {
	return Accounting{
		Received: now.Received - before.Received, Aggregated: now.Aggregated - before.Aggregated,
		Dropped: now.DroppedTotal() - before.DroppedTotal(), Flushed: now.Flushed - before.Flushed,
		Unsent: now.Unsent - before.Unsent, Pending: now.Pending, Balanced: now.Balanced,
	}
}

// Holds reports whether all spans are accounted for.
func (r *Report) Holds() bool {
	return r.Accounting.Balanced && len(r.Faults) == 0 && (r.HitsEqualAccepted == nil || *r.HitsEqualAccepted) &&
		(r.Traces == nil || r.Traces.AllAccounted)
}

func (r *Report) fault(err error) { r.Faults = append(r.Faults, err.Error()) }

func (r *Report) addTracers(did *result) {
	r.SpansAttempted, r.Refused, r.Publish = did.Attempted, did.Refused, did.Publish.times()
	if did.Handed > 0 {
		r.TracerCPU = float64(did.CPU) / float64(did.Handed)
	}
}

// TracesReport is the additional result of workload Traces. Its figures are medians of the
// rounds, per span in the requests, counted or not.
type TracesReport struct {
	Format            string         `json:"format"`
	Rounds            int            `json:"rounds"`
	SpansPerRequest   int            `json:"spans_per_request"`
	CountedPerRequest int            `json:"counted_per_request"`
	BytesPerSpan      float64        `json:"bytes_per_span"`
	Relay             TracesLoad     `json:"relay"`
	Proxied           TracesLoad     `json:"proxied"`
	Counted           TracesLoad     `json:"counted"`
	Counting          TracesCounting `json:"counting"`
	TimesRelay        float64        `json:"times_relay"`          // cost of forwarding, divided by that of the relay
	TimesWalk         float64        `json:"times_counting"`       // cost that counting adds, divided by that of parsing alone
	TimesWhole        float64        `json:"times_counting_whole"` // counting's cost in the daemon, divided by that of counting alone
	LeftToAgent       uint64         `json:"left_to_agent"`
	AllAccounted      bool           `json:"all_accounted"`
}

// TracesLoad is the cost of requests that were relayed, forwarded only, or counted and
// forwarded.
type TracesLoad struct {
	Requests       uint64  `json:"requests"`
	SpansPerSecond float64 `json:"spans_per_second"`
	CPU            float64 `json:"cpu_ns_per_span"`
	SystemCPU      float64 `json:"system_cpu_ns_per_span"`
	CPUPerSecond   float64 `json:"cpu_ns_per_second"`
	TracerCPU      float64 `json:"tracer_cpu_ns_per_span"`
	Allocs         float64 `json:"allocs_per_span"` // 0 for a relay, which does not report it
	Answer         Times   `json:"answer"`
}

// TracesCounting is the cost of counting: measured alone within one process (parsing only, and
// completely), and as the cost it adds to a daemon that forwards the requests.
type TracesCounting struct {
	CPU         float64 `json:"cpu_ns_per_span"`
	WholeCPU    float64 `json:"whole_cpu_ns_per_span"`
	Allocs      float64 `json:"allocs_per_span"`
	AddedCPU    float64 `json:"added_cpu_ns_per_span"`
	AddedAllocs float64 `json:"added_allocs_per_span"`
}
