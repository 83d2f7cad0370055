package aggregate

import (
	"time"

	"github.com/spanstatsd/spanstatsd/internal/ring"
	"github.com/spanstatsd/spanstatsd/internal/routing"
)

// Stats is what the outside sees of the aggregates.
type Stats struct {
	Drainers    []DrainerStats
	Ages        Ages
	Merged      uint64            // spans of groups that tracers have counted
	Held        uint64            // snapshots in tables that are not sealed
	Origins     int               // in the current interval
	Aggregates  int               // keys in the current interval
	Masked      map[string]uint64 // keys with a mask in the place of a label, by label
	Partitions  routing.Stats
	SketchBytes int       // that tables hold for the bins of their sketches
	Coarsened   uint64    // spans put into a higher bin than their own, see sketch.Memory
	Sealed      uint64    // cycles so far
	LastSeal    time.Time // or the start
}

// DrainerStats is one drainer's part of it.
type DrainerStats struct {
	Aggregated  uint64
	Late, Early uint64
	Ring        ring.Stats
}

// Aggregated is what all drainers have counted, and what was merged.
func (s *Stats) Aggregated() (total uint64) {
	total = s.Merged
	for i := range s.Drainers {
		total += s.Drainers[i].Aggregated
	}
	return total
}

// Stats reads the counters without disturbing those who write them.
func (a *Aggregator) Stats() Stats {
	s := Stats{
		Ages:        newAges(),
		Partitions:  a.balancer.Stats(),
		Sealed:      a.sealed.Load(),
		LastSeal:    a.lastSeal.Load(),
		SketchBytes: a.sketches.Taken(),
		Coarsened:   a.sketches.Coarsened(),
		Masked:      a.Masked(),
	}
	for _, c := range a.cycles.memory {
		if c.merged != nil {
			s.Held += c.merged.held.Load()
		}
	}
	s.Merged = a.merged.Load()
	for i, d := range a.drainers {
		s.Drainers = append(s.Drainers, DrainerStats{
			Aggregated: d.aggregated.Load(), Late: d.late.Load(), Early: d.early.Load(),
			Ring: d.ring.Stats(),
		})
		ring, load := &s.Drainers[i].Ring, &s.Partitions.Drainers[i]
		load.Slots, load.SlotsUsed = ring.Slots, ring.Used
		s.Partitions.Slots += ring.Slots
		s.Partitions.SlotsUsed += ring.Used
		s.Ages.add(&d.ages)
		s.Held += d.tables[0].held.Load() + d.tables[1].held.Load()
	}
	if a.cycles.current.Load() != closedCycle {
		s.Origins, s.Aggregates = a.intervals.Size()
	}
	return s
}
