package ingest

import (
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// resolve finds every snapshot's aggregate and ring. Those of the common shape are done
// in one loop, and each that is not by itself.
func (a *admission) resolve(cycle *aggregate.Cycle, walker *wire.SpansWalker) error {
	b, n := &a.batch, walker.Len()
	b.reset(n)
	a.window, a.aged = cycle.Window(), -1
	if aggregate.MostSlots*n < a.server.config.Aggregator.RingSlots() { // or there may be no room for a note
		a.aged = a.ageing.Next(n)
	}
	a.route.Begin()
	for {
		if err := a.common(cycle, walker); err != nil {
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
		a.unusual(s, to, index, walker.Left())
	}
}

// common resolves snapshots up to the first that is of no common shape, or whose end is
// noted. It is the hot path.
func (a *admission) common(cycle *aggregate.Cycle, walker *wire.SpansWalker) error {
	b, window, route, interval := &a.batch, &a.window, a.route, a.interval
	known, numbers := a.keys.known, a.keys.numbers
	rest := walker.Rest()
	count := walker.Left()
	if before := walker.Len() - count; a.aged >= before {
		count = a.aged - before
	}
	slots, drainers := b.slots[b.len:b.len+count], b.drainers[b.len:b.len+count]
	done := 0
	for done < count {
		size, key, number, duration, end, flags := wire.Common(rest)
		if size == 0 {
			break
		}
		var to *resolved
		index := none
		if key != nil {
			index = a.keys.follow(key)
		} else if int(number) < len(numbers) {
			index = int(numbers[number]) - 1
		}
		if index != none && known[index].interval == interval {
			to = &known[index].resolved
		} else {
			var err error
			if to, err = a.lookUp(cycle, index, key, number); err != nil {
				return err
			}
			known = a.keys.known
		}
		rest = rest[size:]
		drainer := route.Drainer(to.hash)
		slots[done] = aggregate.Slot{Value: duration, Key: to.id, Facts: window.Facts(end, flags)}
		drainers[done] = uint16(drainer)
		b.runs[drainer].slots++
		if to.collapsed != 0 {
			b.collapse(to.collapsed)
		}
		done++
	}
	b.len += done
	walker.Passed(done, rest)
	return nil
}

// unusual resolves a snapshot that may take more than one slot, the next of the batch.
func (a *admission) unusual(s *wire.Snapshot, to *resolved, index, left int) {
	b := &a.batch
	if s.Weight != 1 {
		most := b.len + aggregate.MostSlots*(left+1) // all that follow may have a weight
		if a.aged >= index {
			most++
		}
		b.room(most)
	}
	slots := b.slots[:b.len]
	if index == a.aged {
		slots = a.window.AppendEnd(slots, s.End)
	}
	slots = a.window.Append(slots, &aggregate.Snapshot{
		Key: to.id, Duration: s.Duration, End: s.End, Weight: s.Weight, Flags: s.Flags,
	})
	drainer := a.route.Drainer(to.hash)
	for i := b.len; i < len(slots); i++ {
		b.drainers[i] = uint16(drainer)
	}
	r := &b.runs[drainer]
	r.slots += len(slots) - b.len
	r.notes += len(slots) - b.len - 1
	b.len = len(slots)
	if to.collapsed != 0 {
		b.collapse(to.collapsed)
	}
}
