package otlp

import (
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/points"
	"github.com/spanstatsd/spanstatsd/internal/span/slo"
)

// objectives writes the counters of objectives. They are cumulative, even if the metrics of spans are deltas. So a
// request that is not delivered loses no event: the next one contains all of them.
type objectives struct {
	resource     []byte   // encoded attributes of the daemon, because the spans of an objective can be from several processes
	attributes   [][]byte // encoded, by objective
	totals       slo.Counts
	start        uint64 // start of the first cycle, in nanoseconds since the Unix epoch
	events, good int    // indexes of the metrics in writer.metrics
}

// newObjectives returns the counters of the configured objectives, and adds their metrics to w.
func newObjectives(c *Config, w *writer) objectives {
	if len(c.Objectives) == 0 {
		return objectives{}
	}
	o := objectives{totals: make(slo.Counts, len(c.Objectives))}
	o.events = w.addTotal(points.ObjectiveEvents)
	o.good = w.addTotal(points.ObjectiveGoodEvents)
	config := points.Config{Instance: c.Instance}
	o.resource = []byte(config.DaemonResource())
	for _, name := range c.Objectives {
		o.attributes = append(o.attributes, []byte(config.ObjectiveAttributes(name)))
	}
	return o
}

// encode adds the counts of a cycle to the totals, and writes all totals: for each objective, a series with two points.
func (o *objectives) encode(c *export.Cycle, w *writer) {
	if len(o.totals) == 0 {
		return
	}
	o.totals.Add(c.Objectives)
	isFirstCycle := o.start == 0
	if isFirstCycle {
		o.start = w.window.start
	}
	w.beginResource(o.resource)
	for i, total := range o.totals {
		w.writePoint(&points.Point{Metric: o.events, Attributes: o.attributes[i], Calls: uint64(total.Events)}, o.start)
		w.writePoint(&points.Point{Metric: o.good, Attributes: o.attributes[i], Calls: uint64(total.Good)}, o.start)
		w.endSeries() // always fits, because even the smallest payload (export.MinPayloadBytes) is much longer
	}
}
