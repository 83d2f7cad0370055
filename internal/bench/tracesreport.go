package bench

import (
	"github.com/spanstatsd/spanstatsd/internal/bench/measure"
)

// TracesReport is what a run of the workload of traces found besides. Its figures are
// medians of the rounds, a span of all that a request brings, counted or not.
type TracesReport struct {
	Format            string         `json:"format"`
	Rounds            int            `json:"rounds"`
	SpansPerRequest   int            `json:"spans_per_request"`
	CountedPerRequest int            `json:"counted_per_request"`
	BytesPerSpan      float64        `json:"bytes_per_span"`
	Proxied           TracesLoad     `json:"proxied"`
	Counted           TracesLoad     `json:"counted"`
	Counting          TracesCounting `json:"counting"`
	LeftToAgent       uint64         `json:"left_to_agent"`
	AllAccounted      bool           `json:"all_accounted"`
}

// TracesLoad is what requests cost that were only handed on, or counted as well.
type TracesLoad struct {
	Requests       uint64  `json:"requests"`
	SpansPerSecond float64 `json:"spans_per_second"`
	CPU            float64 `json:"cpu_ns_per_span"`
	SystemCPU      float64 `json:"system_cpu_ns_per_span"`
	TracerCPU      float64 `json:"tracer_cpu_ns_per_span"`
	Allocs         float64 `json:"allocs_per_span"`
	Answer         Times   `json:"answer"`
}

// TracesCounting is what counting costs: measured alone within a process, and as what
// it adds to a daemon that hands the requests on.
type TracesCounting struct {
	CPU         float64 `json:"cpu_ns_per_span"`
	Allocs      float64 `json:"allocs_per_span"`
	AddedCPU    float64 `json:"added_cpu_ns_per_span"`
	AddedAllocs float64 `json:"added_allocs_per_span"`
}

// addTraces takes in the figures, and holds what arrived at the agent against what
// was sent.
func (t *tracesRun) addTraces(r *Report) {
	arrived, rec := t.target.agent.Totals(), t.recording
	proxied, counted := t.loads[0].median(rec), t.loads[1].median(rec)
	requests := proxied.Requests + counted.Requests
	left := arrived.Uncounted.Requests * uint64(rec.counted)
	r.Traces = &TracesReport{
		Format: rec.name, Rounds: len(t.loads[1].turns), SpansPerRequest: rec.spans, CountedPerRequest: rec.counted,
		BytesPerSpan: float64(len(rec.body)) / float64(rec.spans),
		Proxied:      proxied, Counted: counted, Counting: t.medianCounting(),
		LeftToAgent: left,
		AllAccounted: arrived.Hits+left == counted.Requests*uint64(rec.counted) &&
			arrived.Counted.Requests+arrived.Uncounted.Requests == requests &&
			arrived.Counted.Bytes+arrived.Uncounted.Bytes == requests*uint64(len(rec.body)),
	}
}

func (l *load) median(of *recording) TracesLoad {
	middle := func(figure func(TracesLoad) float64) float64 { return measure.Median(l.turns, figure) }
	return TracesLoad{
		Requests:       l.did.Handed / uint64(of.spans),
		SpansPerSecond: middle(func(t TracesLoad) float64 { return t.SpansPerSecond }),
		CPU:            middle(func(t TracesLoad) float64 { return t.CPU }),
		SystemCPU:      middle(func(t TracesLoad) float64 { return t.SystemCPU }),
		TracerCPU:      middle(func(t TracesLoad) float64 { return t.TracerCPU }),
		Allocs:         middle(func(t TracesLoad) float64 { return t.Allocs }),
		Answer:         l.did.Publish.times(),
	}
}

// medianCounting compares the two loads round by round: both had the same neighbours.
func (t *tracesRun) medianCounting() TracesCounting {
	rounds := t.counting[:len(t.loads[1].turns)]
	for i, counted := range t.loads[1].turns {
		proxied := t.loads[0].turns[i]
		rounds[i].AddedCPU, rounds[i].AddedAllocs = counted.CPU-proxied.CPU, counted.Allocs-proxied.Allocs
	}
	middle := func(figure func(TracesCounting) float64) float64 { return measure.Median(rounds, figure) }
	return TracesCounting{
		CPU:         middle(func(c TracesCounting) float64 { return c.CPU }),
		Allocs:      middle(func(c TracesCounting) float64 { return c.Allocs }),
		AddedCPU:    middle(func(c TracesCounting) float64 { return c.AddedCPU }),
		AddedAllocs: middle(func(c TracesCounting) float64 { return c.AddedAllocs }),
	}
}
