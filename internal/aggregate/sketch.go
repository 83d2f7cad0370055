package aggregate

import (
	"math"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/mapping"
	"github.com/DataDog/sketches-go/ddsketch/store"
)

// The parameters of the agent's own sketches. Anything else would still be
// accepted, but would not merge bin for bin with what the agent computes. So is
// the truncation: the agent clears the low bits of a duration before its sketch
// sees it; sign, exponent and nine bits of mantissa survive, rounding down.
const (
	RelativeAccuracy = 0.01
	maxBins          = 2048
)

// logarithmic is the mapping of every sketch. It is immutable, so all share it.
var logarithmic = func() mapping.IndexMapping {
	m, err := mapping.NewLogarithmicMapping(RelativeAccuracy)
	if err != nil {
		panic("BUG: sketch mapping: " + err.Error())
	}
	return m
}()

// binTable is the mapping of every value that truncation leaves: few enough, 65
// powers of two with 512 steps each, that a look-up in 65 KB replaces a
// logarithm. Counting a span cost 30 to 45 ns of CPU less with it, of some 90,
// measured through ingest and drainers on `stable`.
var binTable = func() (table [65 << mantissaBits]int16) {
	for i := range table {
		table[i] = int16(logarithmic.Index(math.Float64frombits((one + uint64(i)) << truncatedBits)))
	}
	return table
}()

const (
	truncatedBits = 43 // what truncation clears
	mantissaBits  = 9  // what it leaves of the mantissa
	// one is the number 1 without its truncated bits, the smallest duration
	// that has a bin. The largest, a uint64 rounded up, is 2^64.
	one = 1023 << mantissaBits
)

// binOf is the bin of a duration that is not 0.
func binOf(nanoseconds uint64) int {
	return int(binTable[math.Float64bits(float64(nanoseconds))>>truncatedBits-one])
}

// Sketch is a distribution of durations, bin for bin the agent's. It has one
// writer: its table's drainer until the seal, then the flush.
type Sketch struct {
	sketch *ddsketch.DDSketch
	bins   *store.CollapsingLowestDenseStore // the sketch's positive store
}

// NewSketch returns an empty sketch. It holds no bins until the first Add.
func NewSketch() *Sketch {
	bins := store.NewCollapsingLowestDenseStore(maxBins)
	return &Sketch{
		sketch: ddsketch.NewDDSketch(logarithmic, bins, store.NewCollapsingLowestDenseStore(maxBins)),
		bins:   bins,
	}
}

// Add counts one span of that many nanoseconds, unweighted, as the agent does.
func (s *Sketch) Add(nanoseconds uint64) {
	if nanoseconds == 0 {
		_ = s.sketch.Add(0) // 0 is within the mapping's range: the library takes it
		return
	}
	s.bins.Add(binOf(nanoseconds))
}

// Merge adds the bins of other. Both have the same mapping by construction.
func (s *Sketch) Merge(other *Sketch) error { return s.sketch.MergeWith(other.sketch) }

// Count is the number of spans in the sketch.
func (s *Sketch) Count() float64 { return s.sketch.GetCount() }

// Zeros is how many of them were too short for any bin.
func (s *Sketch) Zeros() float64 { return s.sketch.GetZeroCount() }

// Bins calls visit for each bin in use, lowest first.
func (s *Sketch) Bins(visit func(index int, count float64)) {
	s.bins.ForEach(func(index int, count float64) bool {
		visit(index, count)
		return false
	})
}

// keptBins is the widest range of bins whose memory a sketch keeps when it is
// reset: three orders of magnitude. The library's store takes memory for all
// bins between the lowest and the highest, up to 16 KB, and would hold it for ever.
const keptBins = 384

// Reset empties the sketch and keeps its memory, unless that is much.
func (s *Sketch) Reset() {
	if !s.bins.IsEmpty() {
		lowest, _ := s.bins.MinIndex() // fails only for an empty store
		highest, _ := s.bins.MaxIndex()
		if highest-lowest >= keptBins {
			*s = *NewSketch()
			return
		}
	}
	s.sketch.Clear()
}
