package datadog

import (
	"github.com/spanstatsd/spanstatsd/internal/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/traces"
)

// propose proposes the spans of a body whose traces sampling keeps as exemplars of the keys
// that they are about to be counted under. It is for commit.
func (j *job) propose(c *traces.Counter) {
	table := j.server.config.Exemplars
	if table == nil || len(c.Kept()) == 0 {
		return
	}
	j.candidates = table.Choose(func(body *exemplars.Body) {
		for _, kept := range c.Kept() {
			cycle, slot := j.server.publishers.Counted(int(kept.Batch), int(kept.At))
			e := body.Propose(cycle, uint32(slot.Key), slot.Flags&span.Error != 0, slot.Duration)
			if e != nil {
				e.Duration, e.End = slot.Duration, slot.End
				e.TraceHigh, e.TraceLow, e.Span = c.IDs(kept)
			}
		}
	})
}

// judge notes by what the agent has answered whether it has the traces of the body.
func (j *job) judge(status int) {
	j.accepted = status/100 == 2
	j.resolve()
}

// resolve makes exemplars of spans whose traces have really gone on.
func (j *job) resolve() {
	j.server.config.Exemplars.Resolve(j.candidates, j.accepted)
	j.candidates = exemplars.Candidates{}
}
