package oteltraces

import "slices"

// groups are the spans of one resource by their traces, which Datadog tells apart by the
// lower half of an id.
type groups struct {
	table  traceTable
	places []uint32 // by span, of its trace
	order  []uint32 // spans, those of one trace behind one another
	ends   []uint32 // by trace, behind its last span in order
}

// group groups the records from first to last: it counts the spans of each trace, and then
// puts each where those of earlier traces end.
func (g *groups) group(p *payload, first, last int) {
	g.table.reset(last - first)
	g.places = g.places[:0]
	for at := first; at < last; at++ {
		_, low := p.idOf(&p.records[at])
		g.places = append(g.places, uint32(g.table.of(0, low)))
	}
	g.ends = slices.Grow(g.ends[:0], len(g.table.traces)+1)[:len(g.table.traces)+1]
	clear(g.ends)
	for _, place := range g.places {
		g.ends[place+1]++
	}
	for i := range g.table.traces {
		g.ends[i+1] += g.ends[i]
	}
	g.order = slices.Grow(g.order[:0], last-first)[:last-first]
	for i, place := range g.places {
		g.order[g.ends[place]] = uint32(first + i)
		g.ends[place]++
	}
	g.ends = g.ends[:len(g.table.traces)]
}
