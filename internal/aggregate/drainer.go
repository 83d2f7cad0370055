package aggregate

import (
	"math"
	"slices"
	"sync/atomic"
	"time"

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

// ageEvery is how many slots a drainer counts between two whose age it notes: few enough
// for a few hundred a second to say how old all are, many enough that reading the clock
// costs nothing a span.
const ageEvery = 1024

// ageBuckets is how many buckets the histogram has beside the one beyond all bounds.
const ageBuckets = 48

// ageBounds are two to an octave, from 4 microseconds to a minute, in nanoseconds.
var ageBounds = func() (bounds [ageBuckets]uint64) {
	for i := range bounds {
		octave := uint64(1) << (12 + i/2)
		bounds[i] = octave + octave/2*uint64(i%2)
	}
	return bounds
}()

// ages says how long spans had ended when they were counted: the tracer's
// buffering, the socket and the ring together. One drainer writes it and anybody
// reads it.
type ages struct {
	counts  [ageBuckets + 1]atomic.Uint64
	sum     atomic.Uint64 // bits of a float64, in seconds: one span may say that it ended in 1678
	highest atomic.Uint64
	skip    int // slots before the next one that is noted; the drainer's own
}

// sample notes the age of each ageEvery-th of the slots that a drainer counts.
func (a *ages) sample(slots []Slot) {
	for ; a.skip < len(slots); a.skip += ageEvery {
		a.observe(ageAt(time.Now().UnixNano(), slots[a.skip].End))
	}
	a.skip -= len(slots)
}

// ageAt is how long ago something ended, which an int64 may not hold; never less than
// nothing.
func ageAt(now, end int64) uint64 {
	if end >= now {
		return 0
	}
	return uint64(now) - uint64(end)
}

func (a *ages) observe(age uint64) {
	bucket, _ := slices.BinarySearch(ageBounds[:], age) // the first whose bound is not below
	count := &a.counts[bucket]
	// One writer: a load and a store are an exact addition.
	count.Store(count.Load() + 1)
	a.sum.Store(math.Float64bits(math.Float64frombits(a.sum.Load()) + float64(age)/1e9))
	if age > a.highest.Load() {
		a.highest.Store(age)
	}
}

// Ages is how long sampled spans had ended when they were counted, in seconds.
type Ages struct {
	Bounds  []float64
	Counts  []uint64 // one more than Bounds; not cumulative
	Sum     float64
	Highest float64
}

func newAges() Ages {
	a := Ages{Bounds: make([]float64, ageBuckets), Counts: make([]uint64, ageBuckets+1)}
	for i, bound := range ageBounds {
		a.Bounds[i] = float64(bound) / 1e9
	}
	return a
}

func (a *Ages) add(of *ages) {
	for i := range a.Counts {
		a.Counts[i] += of.counts[i].Load()
	}
	a.Sum += math.Float64frombits(of.sum.Load())
	a.Highest = max(a.Highest, float64(of.highest.Load())/1e9)
}
