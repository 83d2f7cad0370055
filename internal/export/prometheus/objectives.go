package prometheus

import (
	"time"

	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/points"
	"github.com/spanstatsd/spanstatsd/internal/span/slo"
)

// objectives maintains the running totals of objectives. Their series exist from the start, with the value 0.
type objectives struct {
	labels []string // encoded, by objective
	totals slo.Counts
	start  int64 // nanoseconds since the Unix epoch
}

// objectiveRecords contains the series of objectives after a cycle, as scrapes read them. It is immutable.
type objectiveRecords struct{ events, good []*record }

// newObjectives returns the totals of objectives with the given names.
func newObjectives(names []string) objectives {
	o := objectives{totals: make(slo.Counts, len(names)), start: time.Now().UnixNano()}
	config := points.Config{Labels: true}
	for _, name := range names {
		o.labels = append(o.labels, config.ObjectiveAttributes(name))
	}
	return o
}

// addCycle adds the counts of a cycle, and returns the series after it.
func (o *objectives) addCycle(c *export.Cycle) objectiveRecords {
	o.totals.Add(c.Objectives)
	return o.records()
}

// records returns the series.
func (o *objectives) records() (r objectiveRecords) {
	for i, total := range o.totals {
		r.events = append(r.events, &record{labels: o.labels[i], start: o.start, calls: total.Events})
		r.good = append(r.good, &record{labels: o.labels[i], start: o.start, calls: total.Good})
	}
	return r
}
