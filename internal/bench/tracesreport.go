package bench

import (
	"fmt"
	"slices"
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
	proxied, counted := &t.loads[0], &t.loads[1]
	requests := proxied.requests + counted.requests
	left := arrived.Uncounted.Requests * uint64(rec.counted)
	r.Traces = &TracesReport{
		Format: rec.name, Rounds: len(counted.turns), SpansPerRequest: rec.spans, CountedPerRequest: rec.counted,
		BytesPerSpan: float64(len(rec.body)) / float64(rec.spans),
		Proxied:      proxied.median(), Counted: counted.median(), Counting: t.counting(),
		LeftToAgent: left,
		AllAccounted: arrived.Hits+left == counted.requests*uint64(rec.counted) &&
			arrived.Counted.Requests+arrived.Uncounted.Requests == requests &&
			arrived.Counted.Bytes+arrived.Uncounted.Bytes == requests*uint64(len(rec.body)),
	}
}

func (l *load) median() TracesLoad {
	return TracesLoad{
		Requests:       l.requests,
		SpansPerSecond: median(l.turns, func(t TracesLoad) float64 { return t.SpansPerSecond }),
		CPU:            median(l.turns, loadCPU),
		SystemCPU:      median(l.turns, func(t TracesLoad) float64 { return t.SystemCPU }),
		TracerCPU:      median(l.turns, func(t TracesLoad) float64 { return t.TracerCPU }),
		Allocs:         median(l.turns, loadAllocs),
		Answer:         timesOf(merge(l.answers...), float64(l.longest)),
	}
}

func loadCPU(t TracesLoad) float64    { return t.CPU }
func loadAllocs(t TracesLoad) float64 { return t.Allocs }

// counting compares the two loads round by round: both had the same neighbours.
func (t *tracesRun) counting() TracesCounting {
	proxied, counted := t.loads[0].turns, t.loads[1].turns
	added := func(figure func(TracesLoad) float64) float64 {
		differences := make([]float64, 0, tracesRounds)
		for i := range counted {
			differences = append(differences, figure(counted[i])-figure(proxied[i]))
		}
		return median(differences, func(d float64) float64 { return d })
	}
	return TracesCounting{
		CPU:      median(t.alone.turns, func(c TracesCounting) float64 { return c.CPU }),
		Allocs:   median(t.alone.turns, func(c TracesCounting) float64 { return c.Allocs }),
		AddedCPU: added(loadCPU), AddedAllocs: added(loadAllocs),
	}
}

// median is the middle one of some figures, 0 of none.
func median[T any](of []T, figure func(T) float64) float64 {
	if len(of) == 0 {
		return 0
	}
	sorted := make([]float64, len(of))
	for i := range of {
		sorted[i] = figure(of[i])
	}
	slices.Sort(sorted)
	return sorted[len(sorted)/2]
}

// write shows it to a person.
func (t *TracesReport) write(row func(name, format string, args ...any)) {
	row("requests", "%s, of %d spans and %.0f bytes a span; %d of the spans are counted", t.Format, t.SpansPerRequest, t.BytesPerSpan, t.CountedPerRequest)
	for _, l := range []struct {
		name string
		*TracesLoad
	}{{"only handed on", &t.Proxied}, {"counted as well", &t.Counted}} {
		row(l.name, "%.0f ns of daemon CPU a span, %.0f of it in the kernel; %.3f allocations; tracer CPU %.0f ns", l.CPU, l.SystemCPU, l.Allocs, l.TracerCPU)
		row("", "%s spans/s; answered after %s", thousands(l.SpansPerSecond), l.Answer)
	}
	row("counting adds", "%.0f ns of daemon CPU a span; %.3f allocations", t.Counting.AddedCPU, t.Counting.AddedAllocs)
	row("counting alone", "%.0f ns of CPU a span; %.5f allocations", t.Counting.CPU, t.Counting.Allocs)
	row("left to the agent", "%s; every request and every span accounted for: %v", thousands(float64(t.LeftToAgent)), t.AllAccounted)
}

// title says what was sent.
func (r *Report) title() string {
	if r.Traces != nil {
		return fmt.Sprintf("workload %s, %d tracers with %d connections", r.Workload, r.Producers, r.Connections)
	}
	return fmt.Sprintf("workload %s, %s keys, batches of %d, %d %s tracers with %d connections of %d origins",
		r.Workload, r.Keys, r.Batch, r.Producers, r.Tracer, r.Connections, r.Origins)
}
