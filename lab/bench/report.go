package bench

import (
	"github.com/spanstatsd/spanstatsd/internal/status"
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

	Costs

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

// Costs are what the spans of a run cost the daemon and, where it says so, their tracers.
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
func booksSince(now, before *status.Books) Books {
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

func (r *Report) addTracers(did *result) {
	r.SpansAttempted, r.Refused, r.Publish = did.Attempted, did.Refused, did.Publish.times()
	if did.Handed > 0 {
		r.TracerCPU = float64(did.CPU) / float64(did.Handed)
	}
}

// TracesReport is what a run of the workload of traces found besides. Its figures are
// medians of the rounds, a span of all that a request brings, counted or not.
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
	TimesRelay        float64        `json:"times_relay"`          // handing on over the relay
	TimesWalk         float64        `json:"times_counting"`       // what counting adds over the walk alone
	TimesWhole        float64        `json:"times_counting_whole"` // the same over all of counting alone
	LeftToAgent       uint64         `json:"left_to_agent"`
	AllAccounted      bool           `json:"all_accounted"`
}

// TracesLoad is what requests cost that were relayed, only handed on, or counted as well.
type TracesLoad struct {
	Requests       uint64  `json:"requests"`
	SpansPerSecond float64 `json:"spans_per_second"`
	CPU            float64 `json:"cpu_ns_per_span"`
	SystemCPU      float64 `json:"system_cpu_ns_per_span"`
	CPUPerSecond   float64 `json:"cpu_ns_per_second"`
	TracerCPU      float64 `json:"tracer_cpu_ns_per_span"`
	Allocs         float64 `json:"allocs_per_span"` // 0 of a relay, which does not tell
	Answer         Times   `json:"answer"`
}

// TracesCounting is what counting costs: measured alone within a process, the walk and all
// of it, and as what it adds to a daemon that hands the requests on.
type TracesCounting struct {
	CPU         float64 `json:"cpu_ns_per_span"`
	WholeCPU    float64 `json:"whole_cpu_ns_per_span"`
	Allocs      float64 `json:"allocs_per_span"`
	AddedCPU    float64 `json:"added_cpu_ns_per_span"`
	AddedAllocs float64 `json:"added_allocs_per_span"`
}
