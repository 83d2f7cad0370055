package bench

import (
	"github.com/spanstatsd/spanstatsd/lab/bench/measure"
)

// addTraces adds the figures, and compares the spans received by the agent with the spans sent.
func (t *tracesRun) addTraces(r *Report) {
	arrived, rec := t.target.agent.Totals(), t.recording
	byRelay, handedOn := t.loads[relayed].median(rec), t.loads[proxied].median(rec)
	andCounted := t.loads[counted].median(rec)
	requests := byRelay.Requests + handedOn.Requests + andCounted.Requests
	rounds := t.compare()
	times := func(figure func(comparison) float64) float64 { return measure.Median(rounds, figure) }
	left := arrived.Uncounted.Requests * uint64(rec.counted)
	r.Traces = &TracesReport{
		Format: rec.name, Rounds: len(rounds), SpansPerRequest: rec.spans, CountedPerRequest: rec.counted,
		BytesPerSpan: float64(len(rec.body)) / float64(rec.spans),
		Relay:        byRelay, Proxied: handedOn, Counted: andCounted,
		Counting: TracesCounting{
			CPU:         times(func(c comparison) float64 { return c.alone.walk.CPU }),
			Allocs:      times(func(c comparison) float64 { return c.alone.walk.Allocs }),
			WholeCPU:    times(func(c comparison) float64 { return c.alone.complete.CPU }),
			AddedCPU:    times(comparison.addedCPU),
			AddedAllocs: times(func(c comparison) float64 { return c.counted.Allocs - c.proxied.Allocs }),
		},
		TimesRelay:  times(func(c comparison) float64 { return c.proxied.CPU / c.relayed.CPU }),
		TimesWalk:   times(func(c comparison) float64 { return c.addedCPU() / c.alone.walk.CPU }),
		TimesWhole:  times(func(c comparison) float64 { return c.addedCPU() / c.alone.complete.CPU }),
		LeftToAgent: left,
		AllAccounted: arrived.Hits+left == andCounted.Requests*uint64(rec.counted) &&
			arrived.Counted.Requests+arrived.Uncounted.Requests == requests &&
			arrived.Counted.Bytes+arrived.Uncounted.Bytes == requests*uint64(len(rec.body)),
	}
}

func (l *load) median(rec *recording) TracesLoad {
	middle := func(figure func(TracesLoad) float64) float64 { return measure.Median(l.turns, figure) }
	return TracesLoad{
		Requests:       l.did.Handed / uint64(rec.spans),
		SpansPerSecond: middle(func(t TracesLoad) float64 { return t.SpansPerSecond }),
		CPU:            middle(func(t TracesLoad) float64 { return t.CPU }),
		SystemCPU:      middle(func(t TracesLoad) float64 { return t.SystemCPU }),
		CPUPerSecond:   middle(func(t TracesLoad) float64 { return t.CPUPerSecond }),
		TracerCPU:      middle(func(t TracesLoad) float64 { return t.TracerCPU }),
		Allocs:         middle(func(t TracesLoad) float64 { return t.Allocs }),
		Answer:         l.did.Publish.times(),
	}
}

// comparison holds the costs of all loads in one round.
type comparison struct {
	relayed, proxied, counted TracesLoad
	alone                     countedAlone
}

func (c comparison) addedCPU() float64 { return c.counted.CPU - c.proxied.CPU }

// compare returns the costs of all loads for each round in which every load had its turn.
func (t *tracesRun) compare() (rounds []comparison) {
	for i, last := range t.loads[counted].turns {
		rounds = append(rounds, comparison{
			t.loads[relayed].turns[i], t.loads[proxied].turns[i], last,
			t.counting[i],
		})
	}
	return rounds
}
