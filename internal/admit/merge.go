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
// its caller hands it on to the agent as it came. It calls commit before it adds the
// first group, as PublishTogether does: what a panic leaves after that is dropped as a
// defect of ours.
func (p *Publisher) Merge(commit func(), groups []aggregate.Group, width uint64, now time.Time) error {
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
	books, spans := &p.shared.books, uint64(0)
	for i := range groups {
		// one each, because all are mended before the first is added
		if p.finder.mend(new(span.Mender), &groups[i].Key) {
			books.normalised.Add(1)
		}
		spans += groups[i].Spans
	}
	commit()
	entry := books.begin(spans, DropBug)
	defer entry.end()
	for i := range groups {
		g := &groups[i]
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
