package points

import (
	"github.com/spanstatsd/spanstatsd/internal/aggregate/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/totals"
)

// overflowAttributes returns the attributes of overflow series.
func overflowAttributes(g *grouper) []byte {
	list := attributes{format: g.scratch.format}
	list.beginList()
	g.dialect.writeOverflow(&list)
	return list.bytes
}

// commonResource returns the encoded resource for spans whose own resource exceeds the limits of the running
// totals. All these spans are counted in one overflow series with this resource.
func commonResource(g *grouper) []byte {
	list := attributes{format: g.scratch.format}
	list.beginList()
	list.addText("service.name", "tracer_blocked_value")
	return list.bytes
}

// Running maintains running totals of the points of a Reader.
type Running struct {
	*totals.Totals
	Slowest map[*totals.Series]exemplars.Exemplar // slowest exemplar of the last cycle
	reader  *Reader
}

// NewRunning returns empty running totals.
func NewRunning(r *Reader, limits totals.Limits) *Running {
	return &Running{
		Totals:  totals.New(limits, overflowAttributes(&r.grouper), commonResource(&r.grouper)),
		Slowest: map[*totals.Series]exemplars.Exemplar{},
		reader:  r,
	}
}

// AddCycle adds the counts of a cycle, one export interval, to the running totals. It also replaces r.Slowest by the
// exemplars of the cycle. start and end are the period of the cycle in nanoseconds since the Unix epoch. The result
// is the number of spans that it could not add.
func (r *Running) AddCycle(c *export.Cycle, start, end int64) (lost uint64) {
	r.Totals.BeginCycle(c.Number, c.FirstUndelivered, start, end) // also removes idle series that are delivered
	clear(r.Slowest)                                              // addSeries fills it again
	for _, group := range r.reader.GroupRows(c.Sealed, c.Rows) {
		lost += r.addSeries(c, group)
	}
	return lost
}

// addSeries adds the counts of the rows in g, which belong to one series, to the running totals, as one or two data
// points. A tracer can send more spans than its histograms contain. addSeries accounts for these spans with the last data
// point. If there is no data point, it returns their number as lost.
func (r *Running) addSeries(c *export.Cycle, g Group) (lost uint64) {
	resource := []byte(r.reader.Resource(g))
	counts := r.reader.SumRows(c.Rows, g)
	remainingSpans := counts.Spans + counts.Values // not in a data point yet; a series has either spans or values
	var lastSeries *totals.Series
	r.reader.VisitPoints(c.Sealed, c.Rows, g, &counts, func(p *Point) {
		spansInPoint := min(p.Durations.Spans, remainingSpans)
		remainingSpans -= spansInPoint
		lastSeries = r.addPoint(resource, p, spansInPoint)
	})
	hasPoint := lastSeries != nil
	if !hasPoint {
		return remainingSpans
	}
	lastSeries.Spans += remainingSpans
	return 0
}

// addPoint adds a data point to the running totals, and returns the series that counts it. spans is the number of
// received spans in the point; p.Calls can be higher, because a sampled span stands for several calls. addPoint also
// stores the exemplar of p in r.Slowest if it is the slowest one of the series in this cycle.
func (r *Running) addPoint(resource []byte, p *Point, spans uint64) *totals.Series {
	id := totals.SeriesID{Resource: resource, Metric: p.Metric, Attributes: p.Attributes}
	series := r.Add(id, totals.Counted{
		Spans: spans, Calls: p.Calls, Errors: p.Errors, Seconds: p.Seconds, Buckets: &p.Durations, Classic: p.Classic,
	})
	hasExemplar := p.Exemplar.Span != 0
	if hasExemplar {
		r.Slowest[series] = slower(r.Slowest[series], p.Exemplar)
	}
	return series
}
