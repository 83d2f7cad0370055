package ingest

import (
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// resolve finds the aggregate and the ring of every snapshot of some batches.
func (a *admission) resolve(cycle *aggregate.Cycle, batches []wire.SpansWalker) error {
	n := 0
	for i := range batches {
		n += batches[i].Len()
	}
	a.route.Begin()
	a.batch.reset(n)
	a.window, a.aged = cycle.Window(), -1
	if aggregate.MostSlots*n+aggregate.EndSlots <= a.server.config.Aggregator.RingSlots() { // or there may be no room for a note
		a.aged = a.ageing.Next(n)
	}
	for i := range batches {
		walker := batches[i]
		n -= walker.Len()
		if err := a.resolveOne(cycle, &walker, n); err != nil {
			return err
		}
		a.aged -= walker.Len()
	}
	return nil
}

// resolveOne does it for one of them, with so many snapshots to come in others. Those of
// the common shape are done in blocks, and each that is not by itself.
func (a *admission) resolveOne(cycle *aggregate.Cycle, walker *wire.SpansWalker, after int) error {
	for {
		if err := a.commons(cycle, walker); err != nil {
			return err
		}
		index := walker.Len() - walker.Left()
		s := &a.snapshot
		if !walker.Next(s) {
			return walker.Err()
		}
		to, err := a.lookUp(cycle, s.Key, s.Number)
		if err != nil {
			return err
		}
		a.unusual(s, to, index == a.aged, walker.Left()+after)
	}
}

// commons resolves snapshots up to the first that is of no common shape, or whose end is
// noted. It is the hot path, in four loops of which each has few enough values to keep
// them in registers: snapshots are read, their keys found, some of them noted, and their
// slots made. In one loop that took twice the instructions, for moving values about.
func (a *admission) commons(cycle *aggregate.Cycle, walker *wire.SpansWalker) error {
	for {
		read := a.block.read[:]
		if before := a.aged - (walker.Len() - walker.Left()); before >= 0 {
			read = read[:min(len(read), before)]
		}
		read = read[:walker.Commons(read)]
		if len(read) == 0 {
			return nil
		}
		if err := a.find(cycle, walker, read); err != nil {
			return err
		}
		a.route.Note(a.block.hashes[:len(read)])
		a.settle(read)
	}
}

// settle makes the slots of some snapshots whose keys were found.
func (a *admission) settle(read []wire.Common) {
	b, window := &a.batch, &a.window
	ids, hashes := a.block.ids[:len(read)], a.block.hashes[:len(read)]
	for i := range read {
		c := &read[i]
		r := &b.runs[a.route.Drainer(hashes[i])]
		if r.end%chunk == 0 {
			b.open(r)
		}
		b.slots[r.end] = aggregate.SlotOf(window.Facts(c.End)|aggregate.Facts(c.Flags), ids[i], c.Duration)
		r.end++
	}
}

// unusual resolves a snapshot that may take more than one slot, with so many to come.
func (a *admission) unusual(s *wire.Snapshot, to *resolved, aged bool, left int) {
	b := &a.batch
	slots := b.few[:0]
	if aged {
		slots = a.window.AppendEnd(slots, s.End)
	}
	slots = a.window.Append(slots, &aggregate.Snapshot{
		Key: to.id, Duration: s.Duration, End: s.End, Weight: s.Weight, Flags: s.Flags,
	})
	if len(slots) > 1 {
		b.roomFor(left + 1) // for all that follow may
	}
	a.block.hashes[0] = to.hash
	a.route.Note(a.block.hashes[:1])
	r := &b.runs[a.route.Drainer(to.hash)]
	r.notes += len(slots) - 1
	for _, slot := range slots {
		b.add(r, slot)
	}
	if to.collapsed != 0 {
		b.collapse(to.collapsed)
	}
}
