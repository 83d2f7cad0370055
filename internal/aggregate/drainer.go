package aggregate

import (
	"sync/atomic"

	"github.com/spanstatsd/spanstatsd/internal/ring"
	"golang.org/x/sys/cpu"
)

// drainLimit is how many slots a drainer counts before it frees them: few
// enough that producers get room back early, many enough that the free, the
// clock and the counters cost nothing a span.
const drainLimit = 512

// drainer empties one ring into its own tables. Everything in it is touched by
// its goroutine alone, except the counters, which others may read.
type drainer struct {
	ring     *ring.Ring[Slot]
	tables   [2]*Table     // of cycle n at n%2
	reported chan struct{} // a signal is done with
	cleared  uint64        // snapshots that the last clear gave up
	done     chan struct{}
	ages     ages

	_          cpu.CacheLinePad
	aggregated atomic.Uint64
	late       atomic.Uint64
	early      atomic.Uint64
	_          cpu.CacheLinePad
}

func (d *drainer) run() {
	defer close(d.done)
	d.ring.Consume(drainLimit, d.count, d.signal)
}

// count adds slots to the tables of their cycles.
func (d *drainer) count(slots []Slot) {
	d.ages.sample(slots)
	var taken [2]uint64 // by table
	var clamped [3]uint64
	for i := range slots {
		s := &slots[i]
		d.tables[s.cycle].Add(s)
		taken[s.cycle]++
		clamped[s.clamp]++
	}
	for i, n := range taken {
		// A table that got nothing may be sealed, and is then not ours to write.
		if n > 0 {
			d.tables[i].held.Store(d.tables[i].held.Load() + n)
		}
	}
	// One writer: a load and a store are an exact addition.
	d.aggregated.Store(d.aggregated.Load() + taken[0] + taken[1])
	if clamped[late]+clamped[early] > 0 {
		d.late.Store(d.late.Load() + clamped[late])
		d.early.Store(d.early.Load() + clamped[early])
	}
}

// signal answers a report: the ring has just delivered everything that was
// published before it, so the sealed cycle's table is complete. A clear comes
// past what lies in the ring, which is counted into the emptied table. A stop
// needs no answer, for Consume returns.
func (d *drainer) signal(s ring.Signal) {
	if s.Kind == ring.Clear {
		table := d.tables[s.Arg&1]
		d.cleared = table.held.Load()
		table.Reset()
	}
	if s.Kind != ring.Stop {
		d.reported <- struct{}{}
	}
}
