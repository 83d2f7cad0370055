package translate

import (
	"slices"

	"github.com/spanstatsd/spanstatsd/internal/decode/otlp"
	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

// groups are the spans of one resource by their traces, which Datadog tells apart by the lower
// half of an id.
type groups struct {
	numbers spantable.TraceNumbers
	of      []uint32 // by span, the number of its trace
	order   []uint32 // spans, those of one trace behind one another
	ends    []uint32 // by trace, behind its last span in order
}

// groupBytes is what a span takes in groups.
const groupBytes = spantable.TraceNumberBytes + 2*3*4

// group groups spans: it counts those of each trace, and then puts each where those of earlier
// traces end.
func (g *groups) group(spans []otlp.Place) {
	g.numbers.Reset(len(spans))
	g.of = g.of[:0]
	for i := range spans {
		g.of = append(g.of, uint32(g.numbers.Of(0, spans[i].TraceLow)))
	}
	traces := g.numbers.Len()
	g.ends = slices.Grow(g.ends[:0], traces+1)[:traces+1]
	clear(g.ends)
	for _, number := range g.of {
		g.ends[number+1]++
	}
	for i := range traces {
		g.ends[i+1] += g.ends[i]
	}
	g.order = slices.Grow(g.order[:0], len(spans))[:len(spans)]
	for i, number := range g.of {
		g.order[g.ends[number]] = uint32(i)
		g.ends[number]++
	}
	g.ends = g.ends[:traces]
}

// ofTrace is what a span says that is its trace's, or its sender's, more than its own. Of a
// trace the first span that says something counts, and of a sender the last trace.
type ofTrace struct{ env, version, commit, origin spantable.Text }

// addMissing takes over what was not said yet.
func (o *ofTrace) addMissing(more ofTrace) {
	add := func(to *spantable.Text, text spantable.Text) {
		if to.Len == 0 {
			*to = text
		}
	}
	add(&o.env, more.env)
	add(&o.version, more.version)
	add(&o.commit, more.commit)
	add(&o.origin, more.origin)
}
