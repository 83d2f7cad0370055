package ingest

import (
	"errors"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/registry"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Why groups are not merged, beside what a cycle says of them.
var (
	ErrStopping       = errors.New("merge groups: the daemon stops")
	ErrNotWanted      = errors.New("merge groups: the agent takes no statistics")
	ErrTooManyOrigins = errors.New("merge groups: the interval has no room for one more origin")
)

// Merge adds groups that a tracer has counted itself, all or none of them. A
// group's hits are its spans in the books: received and aggregated at once, since
// no ring is in between.
//
// What it refuses is the tracer's count and not one of ours, so it is in no book;
// its caller hands it on to the agent as it came. It calls commit before it adds the
// first group, as PublishTogether does: what a panic leaves after that is dropped as a
// defect of ours.
func (p *Publisher) Merge(commit func(), groups []aggregate.Group, width uint64, now time.Time) error {
	s := p.server
	switch {
	case s.isCut():
		return ErrStopping
	case !s.wanted():
		return ErrNotWanted
	}
	cycle := p.reader.Enter()
	if cycle == nil {
		return ErrStopping
	}
	defer p.reader.Exit()
	merging := cycle.Merging()
	defer merging.End()
	if err := merging.Reserve(groups, width, now); err != nil {
		return err
	}
	if !p.enterCycle(cycle) {
		return ErrTooManyOrigins
	}
	spans := uint64(0)
	for i := range groups {
		if p.normalize(&groups[i].Key) {
			s.counters.cut.Add(1)
		}
		spans += groups[i].Spans
	}
	commit()
	unmerged := spans
	defer s.counters.received.Add(spans)
	defer func() { s.counters.dropped[DropBug].Add(unmerged) }()
	for i := range groups {
		g := &groups[i]
		collapsed := merging.Add(p.originID, g)
		unmerged -= g.Spans
		for f := range registry.Fields {
			if collapsed.Has(registry.Field(f)) {
				s.counters.collapsed[f].Add(g.Spans)
			}
		}
	}
	return nil
}

// normalize makes of a key what the statistics will show.
func (a *admission) normalize(k *span.Key) (changed bool) {
	changed = k.Normalize(a.origin.Lang)
	if most := a.server.config.MaxResource; len(k.Resource) > most {
		k.Resource, changed = span.Text(k.Resource, most), true
	}
	return changed
}
