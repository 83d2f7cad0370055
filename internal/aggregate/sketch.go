package aggregate

import (
	"math"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/mapping"
	"github.com/DataDog/sketches-go/ddsketch/store"
)

// The parameters of the agent's own sketches. Anything else would still be
// accepted, but would not merge bin for bin with what the agent computes.
const (
	relativeAccuracy = 0.01
	maxBins          = 2048
)

// truncation clears what the agent clears of a duration before its sketch sees
// it: sign, exponent and nine bits of mantissa survive, always rounding down.
const truncation = 0xfffff80000000000

// logarithmic is the mapping of every sketch. It is immutable, so all share it.
var logarithmic = func() mapping.IndexMapping {
	m, err := mapping.NewLogarithmicMapping(relativeAccuracy)
	if err != nil {
		panic("BUG: sketch mapping: " + err.Error())
	}
	return m
}()

// Sketch is a distribution of durations, bin for bin the agent's. It has one
// writer: its table's drainer until the seal, then the flush.
type Sketch struct {
	sketch *ddsketch.DDSketch
}

// NewSketch returns an empty sketch. It holds no bins until the first Add.
func NewSketch() *Sketch {
	return &Sketch{ddsketch.NewDDSketch(logarithmic,
		store.NewCollapsingLowestDenseStore(maxBins), store.NewCollapsingLowestDenseStore(maxBins))}
}

// Add counts one span of that many nanoseconds, unweighted, as the agent does.
func (s *Sketch) Add(nanoseconds uint64) {
	value := math.Float64frombits(math.Float64bits(float64(nanoseconds)) & truncation)
	// Every uint64 lies within the mapping's range, so the library can't refuse it.
	_ = s.sketch.Add(value)
}

// Merge adds the bins of other. Both have the same mapping by construction.
func (s *Sketch) Merge(other *Sketch) error { return s.sketch.MergeWith(other.sketch) }

// Count is the number of spans in the sketch.
func (s *Sketch) Count() float64 { return s.sketch.GetCount() }

// Zeros is how many of them were too short for any bin.
func (s *Sketch) Zeros() float64 { return s.sketch.GetZeroCount() }

// Bins calls visit for each bin in use, lowest first.
func (s *Sketch) Bins(visit func(index int, count float64)) {
	s.sketch.GetPositiveValueStore().ForEach(func(index int, count float64) bool {
		visit(index, count)
		return false
	})
}

// Reset empties the sketch and keeps its memory.
func (s *Sketch) Reset() { s.sketch.Clear() }
