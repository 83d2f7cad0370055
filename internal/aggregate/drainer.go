package aggregate

import (
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/ring"
	"golang.org/x/sys/cpu"
)

// drainLimit is the number of slots that a drainer counts before it frees them: small enough that
// producers soon get free slots, large enough that the cost of freeing, of the clock and of the
// counters is negligible per span.
const drainLimit = 512

// drainer counts the slots of one ring in its own tables. Only its goroutine uses the fields,
// except for the counters, which any goroutine can read.
type drainer struct {
	ring      *ring.Ring[Slot]
	tables    [2]*Table     // table of cycle n at index n%2
	handled   chan struct{} // receives a token when a signal has been handled
	discarded uint64        // snapshots discarded by the last Clear; the sealer reads it after handled

	discardedValues uint64 // the same for values of measures
	done            chan struct{}
	ages            ages

	_          cpu.CacheLinePad
	aggregated atomic.Uint64
	late       atomic.Uint64
	early      atomic.Uint64
	values     atomic.Uint64 // aggregated values of measures
	excess     atomic.Uint64 // sum of all weights minus aggregated, as bits of a float64
	_          cpu.CacheLinePad
}

// run counts slots until ring.Stop.
func (d *drainer) run() {
	defer close(d.done)
	d.ring.Consume(drainLimit, d.count, d.handleSignal)
}

// count adds each slot, the data of one span or value, to the table of its cycle, and updates the counters. All counters
// except d.values count only spans.
func (d *drainer) count(slots []Slot) {
	d.ages.sample(slots)
	var taken [2]uint64   // by table
	var values [2]uint64  // by table
	var spansBy [3]uint64 // by timing
	var excess float64    // exact for integer weights, so it is 0 if no span was sampled
	for i := range slots {
		s := &slots[i]
		d.tables[s.cycle].Add(s)
		spans := s.spans()
		taken[s.cycle] += spans
		values[s.cycle] += 1 - spans
		spansBy[s.timing] += spans
		excess += s.Weight - 1
	}
	for i, n := range taken {
		if n > 0 { // a table that takes no slot may be sealed, and must not be written
			increase(&d.tables[i].pending, n)
		}
		if values[i] > 0 {
			increase(&d.tables[i].pendingValues, values[i])
			increase(&d.values, values[i])
		}
	}
	increase(&d.aggregated, taken[0]+taken[1])
	if excess != 0 {
		d.excess.Store(math.Float64bits(math.Float64frombits(d.excess.Load()) + excess))
	}
	if spansBy[late]+spansBy[early] > 0 {
		increase(&d.late, spansBy[late])
		increase(&d.early, spansBy[early])
	}
}

// increase adds n to a counter that only one goroutine writes.
func increase(counter *atomic.Uint64, n uint64) { counter.Store(counter.Load() + n) }

// handleSignal handles a signal that the ring delivers. The sealer, which sends the signals, waits until handleSignal has
// sent to d.handled.
func (d *drainer) handleSignal(signal ring.Signal) {
	switch signal.Kind {
	case ring.Report: // all slots that were published before the signal are counted now
	case ring.Clear:
		cycle := signal.Arg
		d.discard(cycle)
	case ring.Stop:
		return // the sealer waits for the end of the goroutine instead
	}
	d.handled <- struct{}{}
}

// discard discards the spans and values of a cycle that are counted so far. It stores their numbers in d.discarded and
// d.discardedValues, for the sealer.
func (d *drainer) discard(cycle uint64) {
	table := d.tables[cycle%2] // cycles use the two tables in turn
	d.discarded = table.pending.Load()
	d.discardedValues = table.pendingValues.Load()
	table.Reset()
}

// ageEvery is the interval, in slots, at which a drainer records the age of a slot: small enough
// for a few hundred samples per second, large enough that reading the clock costs nothing per span.
const ageEvery = 1024

// ageBuckets is the number of bounds of the histogram of ages.
const ageBuckets = 48

// ageBounds are two bounds per power of two, from 4 microseconds to a minute, in nanoseconds.
var ageBounds = func() (bounds [ageBuckets]uint64) {
	for i := range bounds {
		octave := uint64(1) << (12 + i/2)
		bounds[i] = octave + octave/2*uint64(i%2)
	}
	return bounds
}()

// ages is a histogram of the time from the end of a span until it is counted, spent in the client's
// buffer, the socket and the ring. It has one writer, the drainer, and any number of readers.
type ages struct {
	counts  [ageBuckets + 1]atomic.Uint64
	sum     atomic.Uint64 // seconds, as bits of a float64, because the age of one span can be centuries
	highest atomic.Uint64
	skip    int // slots before the next sample; used only by the drainer
}

// sample records the age of every ageEvery-th slot. slots are the next slots of the ring.
func (a *ages) sample(slots []Slot) {
	for a.skip < len(slots) {
		a.observe(ageAt(time.Now().UnixNano(), slots[a.skip].End))
		a.skip += ageEvery
	}
	a.skip -= len(slots)
}

// ageAt returns the time from end until now, or 0 if end is in the future. It can exceed the
// largest int64.
func ageAt(now, end int64) uint64 {
	if end >= now {
		return 0
	}
	return uint64(now) - uint64(end)
}

// observe counts one age, in nanoseconds, in the histogram. Only one goroutine may call it, because it
// updates the counters with a load and a store, which is cheaper than an atomic addition.
func (a *ages) observe(age uint64) {
	bucket, _ := slices.BinarySearch(ageBounds[:], age)
	increase(&a.counts[bucket], 1)
	seconds := math.Float64frombits(a.sum.Load()) + float64(age)/1e9
	a.sum.Store(math.Float64bits(seconds))
	if age > a.highest.Load() {
		a.highest.Store(age)
	}
}

// Ages is a histogram of the time from the end of sampled spans until they were counted, in
// seconds.
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

// add adds the histogram of one drainer.
func (a *Ages) add(sampled *ages) {
	for i := range a.Counts {
		a.Counts[i] += sampled.counts[i].Load()
	}
	a.Sum += math.Float64frombits(sampled.sum.Load())
	a.Highest = max(a.Highest, float64(sampled.highest.Load())/1e9)
}
