package aggregate

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

// ageEvery is how many slots a drainer counts between two whose age it notes: few enough
// for a few hundred a second to say how old all are, many enough that reading the clock
// costs nothing a span.
const ageEvery = 1024

// The bounds of the histogram: two to an octave, from 4 microseconds to a minute.
const (
	ageShift   = 12
	ageBuckets = 48
)

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
	count := &a.counts[ageBucket(age)]
	// One writer: a load and a store are an exact addition.
	count.Store(count.Load() + 1)
	a.sum.Store(math.Float64bits(math.Float64frombits(a.sum.Load()) + float64(age)/1e9))
	if age > a.highest.Load() {
		a.highest.Store(age)
	}
}

// ageBucket is the first bucket whose bound is not below the age.
func ageBucket(age uint64) int {
	if age <= 1<<ageShift {
		return 0
	}
	// The highest bit gives the octave, the one below it the half.
	age--
	octave := bits.Len64(age) - 1
	half := int(age >> (octave - 1) & 1)
	return min(2*(octave-ageShift)+half+1, ageBuckets)
}

// ageBound is the upper bound of a bucket but the last, in nanoseconds.
func ageBound(bucket int) uint64 {
	octave := uint64(1) << (ageShift + bucket/2)
	return octave + octave/2*uint64(bucket%2)
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
	for i := range a.Bounds {
		a.Bounds[i] = float64(ageBound(i)) / 1e9
	}
	return a
}

// add takes what one drainer saw in.
func (a *Ages) add(of *ages) {
	for i := range a.Counts {
		a.Counts[i] += of.counts[i].Load()
	}
	a.Sum += math.Float64frombits(of.sum.Load())
	a.Highest = max(a.Highest, float64(of.highest.Load())/1e9)
}
