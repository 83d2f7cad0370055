package ingest

import (
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// resolve finds every snapshot's aggregate and ring. Those of the common shape are done
// in blocks, and each that is not by itself.
func (a *admission) resolve(cycle *aggregate.Cycle, walker *wire.SpansWalker) error {
	n := walker.Len()
	a.route.Begin()
	a.batch.reset(n, a.route.Drainers())
	a.window, a.aged = cycle.Window(), -1
	if aggregate.MostSlots*n+aggregate.EndSlots <= a.server.config.Aggregator.RingSlots() { // or there may be no room for a note
		a.aged = a.ageing.Next(n)
	}
	for {
		if err := a.commons(cycle, walker); err != nil {
			return err
		}
		index := walker.Len() - walker.Left()
		s := &a.snapshot
		if !walker.Next(s) {
			return walker.Err()
		}
		to, err := a.lookUp(cycle, none, s.Key, s.Number)
		if err != nil {
			return err
		}
		a.unusual(s, to, index == a.aged, walker.Left())
	}
}

// commons resolves snapshots up to the first that is of no common shape, or whose end is
// noted. It is the hot path, in four loops of which each has few enough values to keep
// them in registers: snapshots are read, their keys found, some of them noted, and their
// slots made. In one loop that took twice the instructions, for moving values about.
func (a *admission) commons(cycle *aggregate.Cycle, walker *wire.SpansWalker) error {
	for {
		block := a.block[:]
		if before := a.aged - (walker.Len() - walker.Left()); before >= 0 {
			block = block[:min(len(block), before)]
		}
		block = block[:walker.Commons(block)]
		if len(block) == 0 {
			return nil
		}
		if err := a.find(cycle, walker, block); err != nil {
			return err
		}
		a.route.Note(a.hashes[:len(block)])
		a.settle(block)
	}
}

// find finds the keys of some snapshots.
func (a *admission) find(cycle *aggregate.Cycle, walker *wire.SpansWalker, block []wire.Common) error {
	for i := 0; i < len(block); i++ {
		if i = a.numbered(block, i); i == len(block) {
			break
		}
		for ; i < len(block) && block[i].KeyLen != 0; i++ {
			key := walker.Bytes(&block[i])
			if err := a.found(i, cycle, a.keys.follow(key), key, 0); err != nil {
				return err
			}
		}
		if i < len(block) {
			if err := a.found(i, cycle, none, nil, block[i].Key); err != nil {
				return err
			}
		}
	}
	return nil
}

// found notes what the key of a block's snapshot is, which may be looked up for that.
func (a *admission) found(i int, cycle *aggregate.Cycle, index int, key []byte, number uint32) (err error) {
	var to *resolved
	if known := a.keys.known; uint(index) < uint(len(known)) && known[index].interval == a.interval {
		to = &known[index].resolved
	} else if to, err = a.lookUp(cycle, index, key, number); err != nil {
		return err
	}
	if a.ids[i], a.hashes[i] = to.id, to.hash; to.collapsed != 0 {
		a.batch.collapse(to.collapsed)
	}
	return nil
}

// numbered finds the keys of snapshots from one on that have numbers, up to the first
// about which there is more to say, and returns where that is.
func (a *admission) numbered(block []wire.Common, i int) int {
	known, numbers, interval := a.keys.known, a.keys.numbers, a.interval
	ids, hashes := a.ids[:len(block)], a.hashes[:len(block)]
	for ; i < len(block); i++ {
		c := &block[i]
		if c.KeyLen != 0 || int(c.Key) >= len(numbers) {
			return i
		}
		index := uint(numbers[c.Key]) - 1
		if index >= uint(len(known)) {
			return i
		}
		to := &known[index].resolved
		if to.interval != interval || to.collapsed != 0 {
			return i
		}
		ids[i], hashes[i] = to.id, to.hash
	}
	return i
}

// settle makes the slots of some snapshots whose keys were found.
func (a *admission) settle(block []wire.Common) {
	b, window, lanes := &a.batch, &a.window, a.route.Lanes()
	ids, hashes := a.ids[:len(block)], a.hashes[:len(block)]
	for i := range block {
		c := &block[i]
		r := b.byLane[lanes.Of(hashes[i])]
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
		b.room(aggregate.EndSlots + aggregate.MostSlots*(left+1)) // as all that follow may
	}
	a.hashes[0] = to.hash
	a.route.Note(a.hashes[:1])
	r := &b.runs[a.route.Drainer(to.hash)]
	r.notes += len(slots) - 1
	for _, slot := range slots {
		b.add(r, slot)
	}
	if to.collapsed != 0 {
		b.collapse(to.collapsed)
	}
}
