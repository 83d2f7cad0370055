package aggregate

import (
	"time"

	"github.com/spanstatsd/spanstatsd/internal/ring"
)

// Stats is what the outside sees of the aggregates.
type Stats struct {
	Drainers   []DrainerStats
	Ages       Ages
	Held       uint64 // snapshots in tables that are not sealed
	Origins    int    // in the current cycle
	Aggregates int    // keys in the current cycle
	Partitions int
	Sealed     uint64    // cycles so far
	LastSeal   time.Time // or the start
}

// DrainerStats is one drainer's part of it.
type DrainerStats struct {
	Aggregated  uint64
	Late, Early uint64
	Ring        ring.Stats
}

// Aggregated is what all drainers have counted.
func (s *Stats) Aggregated() (total uint64) {
	for i := range s.Drainers {
		total += s.Drainers[i].Aggregated
	}
	return total
}

// Stats reads the counters without disturbing those who write them.
func (a *Aggregator) Stats() Stats {
	s := Stats{
		Ages:       newAges(),
		Partitions: a.Routing().Partitions(),
		Sealed:     a.sealed.Load(),
		LastSeal:   a.lastSeal.Load(),
	}
	for _, d := range a.drainers {
		s.Drainers = append(s.Drainers, DrainerStats{
			Aggregated: d.aggregated.Load(), Late: d.late.Load(), Early: d.early.Load(),
			Ring: d.ring.Stats(),
		})
		s.Ages.add(&d.ages)
		s.Held += d.tables[0].held.Load() + d.tables[1].held.Load()
	}
	if current := a.cycles.current.Load(); current != closedCycle {
		s.Origins, s.Aggregates = a.cycles.slots[current%2].registry.size()
	}
	return s
}
