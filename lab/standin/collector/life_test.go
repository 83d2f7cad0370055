package collector

import (
	"slices"
	"testing"
)

// later returns the good request with cumulative totals multiplied by times, at a later time.
func later(end uint64, times int) Request {
	r := good()
	for m := range r[0].Scopes[0].Metrics {
		metric := &r[0].Scopes[0].Metrics[m]
		metric.Temporality = cumulative
		for i := range metric.Points {
			p := &metric.Points[i]
			p.End, p.Value, p.Count, p.Zeros, p.Sum = end, p.Value*int64(times), p.Count*uint64(times), p.Zeros*uint64(times), p.Sum*float64(times)
			for b := range p.Counts {
				p.Counts[b] *= uint64(times)
			}
			for x := range p.Exemplars {
				p.Exemplars[x].Time = end
			}
		}
	}
	return r
}

// coarser returns a request in which pairs of buckets of the second metric are merged.
func coarser(r Request) Request {
	for i := range r[0].Scopes[0].Metrics[1].Points {
		p := &r[0].Scopes[0].Metrics[1].Points[i]
		n := p.Counts[0]
		// -319 >> 1 is -160, and -317 >> 1 is -159
		p.Scale, p.Offset, p.Counts = 4, p.Offset>>1, []uint64{n, p.Counts[2]}
	}
	return r
}

func accepts(requests ...Request) *Collector {
	c := &Collector{}
	c.checks.problem = c.problem
	for _, r := range requests {
		c.accept(r)
	}
	return c
}

// TestCumulative_CountsIncrease: cumulative points count their increase. A repeated point counts
// nothing, also after its scale was reduced. After a reset, a point counts from its start.
func TestCumulative_CountsIncrease(t *testing.T) {
	anew := later(60, 1)
	for m := range anew[0].Scopes[0].Metrics {
		for i := range anew[0].Scopes[0].Metrics[m].Points {
			anew[0].Scopes[0].Metrics[m].Points[i].Start = 50
		}
	}
	c := accepts(later(20, 1), later(30, 2), later(30, 2), later(40, 2), coarser(later(50, 3)), anew)
	if len(c.totals.Problems) > 0 {
		t.Fatal(c.totals.Problems)
	}
	if got := c.totals.Counts; got.Spans != 4*8 || got.Calls != 4*4 || got.Errors != 4*4 ||
		got.Duration != 4*6_200_000 {
		t.Errorf("%+v", got)
	}
	row := c.rows.All()[0]
	if row.Counts != c.totals.Counts || row.zeros != 4*2 {
		t.Errorf("%+v, %d zeros", row.Counts, row.zeros)
	}
	buckets := uint64(0)
	for _, n := range row.buckets {
		buckets += n
	}
	// coarse buckets count at their upper end, like the fine ones there
	if buckets != 4*6 || len(row.buckets) != 2 {
		t.Errorf("%v", row.buckets)
	}
}

// TestCumulative_RecordsProblems: each change of a good sequence is recorded as a problem.
func TestCumulative_RecordsProblems(t *testing.T) {
	for name, change := range map[string]func(calls, histogram *Point){
		"calls fall":               func(calls, _ *Point) { calls.Value = 3 },
		"a start changes":          func(calls, _ *Point) { calls.Start = 11 },
		"a histogram's start does": func(_, h *Point) { h.Start = 19 },
		"time goes back":           func(calls, _ *Point) { calls.End = 19 },
		"the same time twice":      func(calls, _ *Point) { calls.End, calls.Value = 20, 5 },
		"an empty window":          func(calls, _ *Point) { calls.Start, calls.End = 30, 30 },
		"a sum falls":              func(_, h *Point) { h.Sum = 0.00309 },
		"zeros fall":               func(_, h *Point) { h.Zeros, h.Counts[2], h.Sum = 0, 3, 0.0042 },
		"a bucket falls":           func(_, h *Point) { h.Counts[1], h.Counts[2] = 1, 1 },
		"a finer scale":            func(_, h *Point) { h.Scale, h.Offset = 6, -637 },
	} {
		r := later(30, 1)
		change(&r[0].Scopes[0].Metrics[0].Points[0], &r[0].Scopes[0].Metrics[1].Points[0])
		if len(accepts(later(20, 1), later(30, 1)).totals.Problems) > 0 {
			t.Fatal("a good sequence has problems")
		}
		if len(accepts(later(20, 1), r).totals.Problems) == 0 {
			t.Errorf("%s: not noticed", name)
		}
	}
	mixed := later(20, 1)
	mixed[0].Scopes[0].Metrics[1].Temporality = delta
	if problems := accepts(mixed).totals.Problems; !slices.ContainsFunc(problems, func(p string) bool {
		return p != ""
	}) {
		t.Error("two temporalities in a request were not noticed")
	}
}
