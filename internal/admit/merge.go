package admit

import (
	"errors"
	"time"

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
// its caller hands it on to the agent as it came. It calls commit with the spans that it is about to
// add before it adds the first group, as PublishTogether does: what a panic leaves after that is
// dropped as a defect of ours. A group that is ignored is in the books, and nowhere else.
func (p *Publisher) Merge(
	commit func(spans uint64), groups []aggregate.Group, width uint64, now time.Time,
) error {
	switch {
	case p.shared.isStopped():
		return ErrStopping
	case p.shared.unwanted.Load():
		return ErrNotWanted
	}
	cycle := p.guard.Enter()
	if cycle == nil {
		return ErrStopping
	}
	defer p.guard.Exit()
	merging := cycle.Merging()
	defer merging.End()
	if err := merging.Reserve(groups, width, now); err != nil {
		return err
	}
	if !p.join(cycle) {
		return ErrTooManyOrigins
	}
	books, spans, ignored := &p.shared.books, uint64(0), uint64(0)
	counted := groups[:0]
	for _, g := range groups {
		if p.finder.normalize(&g.Key) {
			books.normalised.Add(1)
		}
		if p.shared.config.Ignore.Key(&g.Key) {
			ignored += g.Spans
			continue
		}
		spans += g.Spans
		counted = append(counted, g)
	}
	commit(spans)
	entry := books.begin(spans+ignored, DropBug)
	entry.ignored = ignored
	defer entry.end()
	for i := range counted {
		g := &counted[i]
		lost := merging.Add(p.finder.originID, g)
		entry.published += g.Spans
		for f := range span.WholeKey + 1 {
			if lost.Has(span.Label(f)) {
				books.collapsed[f].Add(g.Spans)
			}
		}
	}
	return nil
}
