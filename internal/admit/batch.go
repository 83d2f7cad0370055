package admit

import (
	"errors"
	"math"
	"math/bits"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/ring"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/span/slo"
)

// batch is the scratch of one publisher for its current batch.
type batch struct {
	slots         []aggregate.Slot          // one per span, then one per value
	spans         int                       // number of spans
	values        int                       // number of values
	hashes        []uint32                  // hashes of the keys of all slots that are not ignored, in order
	drainers      []uint16                  // drainer of each slot; noDrainer for an ignored one
	perDrainer    []drainerBatch            // one per drainer
	isResolved    bool                      // slots, hashes, drainers and perDrainer are filled for the current batch
	cycle         uint64                    // cycle in which the batch was resolved
	ignored       int                       // number of ignored spans
	ignoredValues int                       // number of values of ignored spans
	shared        int                       // number of counted spans that are marked as span.SharedOrigin
	renamed       int                       // number of counted spans that are marked as span.Renamed
	collapsed     [span.WholeKey + 1]uint64 // number of spans that lost each label
	hasCollapsed  bool

	objectives    slo.Counts // spans that objectives count
	hasObjectives bool
}

// drainerBatch is the part of a batch that goes to one drainer.
type drainerBatch struct {
	spans  int // number of spans; each needs a slot of the drainer's ring
	values int // number of values of spans; each needs a slot, too
	filled int // number of slots that are copied to claim
	claim  ring.Claim[aggregate.Slot]
}

// reset prepares the batch for the given numbers of spans and of their values. It resets the counts, but not the
// contents of slots and drainers, which the caller must overwrite.
func (b *batch) reset(spans, values int) {
	n := spans + values
	if cap(b.slots) < n { // slots, hashes and drainers have the same capacity
		b.slots = make([]aggregate.Slot, n)
		b.hashes = make([]uint32, 0, n)
		b.drainers = make([]uint16, n)
	}
	b.slots = b.slots[:n]
	b.spans = spans
	b.values = values
	b.hashes = b.hashes[:0] // the caller appends those of slots that are not ignored
	b.drainers = b.drainers[:n]
	clear(b.perDrainer)
	b.ignored = 0
	b.ignoredValues = 0
	b.shared = 0
	b.renamed = 0
	clear(b.collapsed[:])
	b.hasCollapsed = false
	clear(b.objectives)
	b.hasObjectives = false
}

// isResolvedIn reports whether an earlier attempt resolved the keys of the current batch in this cycle.
func (b *batch) isResolvedIn(cycle uint64) bool { return b.isResolved && b.cycle == cycle }

// noDrainer marks an ignored span in batch.drainers. It is larger than any drainer's number.
const noDrainer = math.MaxUint16

// ignore excludes the slot at index i of the batch from publishing.
func (b *batch) ignore(i int) {
	b.slots[i] = aggregate.Slot{Key: ignoredKey}
	b.drainers[i] = noDrainer
}

// trim releases the scratch if it was grown for a batch of more than limit spans.
func (b *batch) trim(limit int) {
	if cap(b.slots) > limit {
		b.slots, b.hashes, b.drainers = nil, nil, nil
	}
}

// countCollapsed counts a span whose key lost the given labels.
func (b *batch) countCollapsed(labels registry.LabelSet) {
	b.hasCollapsed = true
	for ; labels != 0; labels &= labels - 1 { // removes the lowest label of the set
		b.collapsed[bits.TrailingZeros16(uint16(labels))]++
	}
}

// Reasons why Merge refuses groups, in addition to the errors of aggregate.
var (
	ErrStopping       = errors.New("merge groups: the daemon is stopping")
	ErrNotWanted      = errors.New("merge groups: the agent does not accept statistics")
	ErrTooManyOrigins = errors.New("merge groups: the maximum number of origins is reached")
)

// countGroup counts the spans of a group for objectives.
func (p *Publisher) countGroup(cycle *aggregate.Cycle, g *aggregate.Group) {
	objectives := p.shared.config.Objectives
	matching := objectives.Match(&g.Key, &p.origin)
	if matching == 0 {
		return
	}
	counts := make(slo.Counts, objectives.Len())
	isComplete := counts.AddGroup(objectives, matching, g.Hits, g.Counts.Errors)
	p.shared.addObjectives(cycle, counts)
	if !isComplete {
		p.shared.totals.withoutObjective.Add(g.Spans)
	}
}

// Merge adds groups of spans that a tracer has already aggregated: all of them or none. The spans
// of each group count as received and as aggregated, since groups do not go through a ring. An
// ignored group counts as dropped.
//
// If Merge returns an error, the caller forwards the groups unchanged to the agent, and they are
// not part of the accounting. Merge calls commit with the number of spans that it will add, before
// it adds the first group. Spans that a panic after commit leaves unmerged count as DropBug.
func (p *Publisher) Merge(
	commit func(spans uint64), groups []aggregate.Group, width uint64, now time.Time,
) error {
	switch {
	case p.shared.isStopped():
		return ErrStopping
	case p.shared.unwanted.Load():
		return ErrNotWanted
	}
	cycle := p.cycleGuard.Enter()
	if cycle == nil {
		return ErrStopping
	}
	defer p.cycleGuard.Exit()
	merging := cycle.LockGroups()
	defer merging.End()
	if err := merging.Reserve(groups, width, now); err != nil {
		return err
	}
	if !p.joinCycle(cycle) {
		return ErrTooManyOrigins
	}
	totals, spans, ignored := &p.shared.totals, uint64(0), uint64(0)
	notIgnored := groups[:0]
	for _, g := range groups {
		if p.finder.normalize(&g.Key) {
			totals.normalized.Add(1)
		}
		if p.shared.config.Ignore.MatchesKey(&g.Key) {
			ignored += g.Spans
			continue
		}
		spans += g.Spans
		notIgnored = append(notIgnored, g)
	}
	commit(spans)
	entry := totals.begin(spans+ignored, DropBug)
	entry.spans.ignored = ignored
	defer entry.end()
	for i := range notIgnored {
		g := &notIgnored[i]
		p.countGroup(cycle, g)
		lost := merging.Add(p.finder.originID, g)
		entry.spans.published += g.Spans
		for f := range span.WholeKey + 1 {
			if lost.Has(span.Label(f)) {
				totals.collapsed[f].Add(g.Spans)
			}
		}
	}
	return nil
}
