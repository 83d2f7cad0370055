package sketch

import (
	"fmt"
	"math"

	"github.com/DataDog/sketches-go/ddsketch/mapping"
	"github.com/DataDog/sketches-go/ddsketch/pb/sketchpb"
)

// Mapping says which durations each bin of a sketch holds. Sketches of one mapping are
// added up bin by bin, and nothing is rounded; those of two would have to be converted,
// which moves spans between bins. So tracers' sketches are added up by their mapping, and
// two mappings are equal only to the last bit.
type Mapping struct {
	Gamma, Offset float64
	Interpolation int32 // as the format numbers it
}

// OwnMapping is the agent's, and that of every span that is counted here.
var OwnMapping = func() Mapping {
	m := logarithmic.ToProto()
	return Mapping{m.Gamma, m.IndexOffset, int32(m.Interpolation)}
}()

// MappingID is a mapping's number in one cycle: 0 is OwnMapping.
type MappingID uint8

// MaxMappings is how many one cycle can hold. The tracers of one language share
// one, and there are six languages or so.
const MaxMappings = 8

// worstAccuracy is beyond what the agent calls a mapping.
const worstAccuracy = 0.5

// Library is the mapping as the library computes it. It fails for one that the agent
// would not read, or not convert to its own where it must, which loses the sketch.
func (m Mapping) Library() (mapping.IndexMapping, error) {
	index, err := mapping.FromProto(&sketchpb.IndexMapping{
		Gamma: m.Gamma, IndexOffset: m.Offset,
		Interpolation: sketchpb.IndexMapping_Interpolation(m.Interpolation),
	})
	if err != nil {
		return nil, fmt.Errorf("read mapping: %w", err)
	}
	least, most, accuracy := index.MinIndexableValue(), index.MaxIndexableValue(), index.RelativeAccuracy()
	if !(least > 0 && most > least && most <= math.MaxFloat64 && accuracy > 0 && accuracy < worstAccuracy) {
		return nil, fmt.Errorf("read mapping: gamma %v with offset %v maps no durations", m.Gamma, m.Offset)
	}
	return index, nil
}

// known is the same of a mapping of which bins were taken.
func (m Mapping) known() mapping.IndexMapping {
	index, err := m.Library()
	if err != nil {
		panic(fmt.Sprintf("BUG: bins were taken that stand for nothing: %v", err))
	}
	return index
}

// lastMapping keeps the library's form of the mapping whose bins came last.
type lastMapping struct {
	mapping Mapping
	indexes mapping.IndexMapping
}

func (l *lastMapping) indexesOf(m Mapping) mapping.IndexMapping {
	if l.indexes == nil || m != l.mapping {
		l.mapping, l.indexes = m, m.known()
	}
	return l.indexes
}

// Range is the lowest and the highest bin that can be merged, each of which stands for a time
// that some span may have taken: up to the largest duration there is, 2^64 ns. In the agent's
// own mapping the highest bin is that of eighteen years, so that nothing that is merged
// collapses; a mapping that is finer than most has the bins that a Sketch has room for. It
// fails as Library does.
func (m Mapping) Range() (first, last int64, err error) {
	if m == OwnMapping {
		return 0, maxBins - 1, nil
	}
	index, err := m.Library()
	if err != nil {
		return 0, 0, err
	}
	shortest := index.Index(index.MinIndexableValue())
	longest := index.Index(min(math.MaxUint64, index.MaxIndexableValue()))
	return max(0, int64(shortest)), min(int64(longest), sketchBins-1), nil
}

// sketchBins is what a sketch has room for: the format's bins whose number takes two
// bytes. Those of the agent's own mapping take a quarter of it, those of any other that
// maps durations to half a percent all.
const sketchBins = 1 << 13

// Bins is a distribution that was counted elsewhere.
type Bins struct {
	Zeros uint64
	List  []Bin // lowest first, if that is at hand
}

// Mean is that of the durations which the bins of a mapping stand for, or 0 of none. The
// library knows the mapping.
func (b *Bins) Mean(m Mapping) float64 {
	library, spans, sum := m.known(), float64(b.Zeros), 0.0
	for _, bin := range b.List {
		spans += float64(bin.Spans)
		sum += float64(bin.Spans) * library.Value(int(bin.Index))
	}
	return sum / max(spans, 1)
}

// Bin is the spans of one bin.
type Bin struct {
	Index uint16 // within its mapping's Range
	Spans uint64
}

// The parameters of the agent's own sketches. Anything else would still be
// accepted, but would not merge bin for bin with what the agent computes. So is
// the truncation: the agent clears the low bits of a duration before its sketch
// sees it; sign, exponent and nine bits of mantissa survive, rounding down.
const (
	RelativeAccuracy = 0.01
	maxBins          = 2048 // the lowest are collapsed beyond that
	allBins          = 2218 // from 0, of 1 ns, to that of the largest uint64
)

// logarithmic is the mapping of every sketch.
var logarithmic = func() mapping.IndexMapping {
	m, err := mapping.NewLogarithmicMapping(RelativeAccuracy)
	if err != nil {
		panic("BUG: sketch mapping: " + err.Error())
	}
	return m
}()

const (
	truncatedBits = 43 // what truncation clears
	mantissaBits  = 9  // what it leaves of the mantissa
	// one is the number 1 without its truncated bits, the smallest duration
	// that has a bin. The largest, a uint64 rounded up, is 2^64.
	one = 1023 << mantissaBits
	// steps are the values that truncation leaves, up to that: 512 to each power of two.
	steps = 64<<mantissaBits + 1
)

// stepOf is the number of the value that truncation leaves of a duration, which is not 0.
func stepOf(nanoseconds uint64) uint16 {
	return uint16(math.Float64bits(float64(nanoseconds))>>truncatedBits - one)
}

// Truncate is what truncation leaves of a duration, in nanoseconds: what a bin counts of it, or
// a histogram's bucket.
func Truncate(nanoseconds uint64) float64 {
	return math.Float64frombits(math.Float64bits(float64(nanoseconds)) >> truncatedBits << truncatedBits)
}

// stepValue is that value, in nanoseconds.
func stepValue(step int) float64 { return math.Float64frombits((one + uint64(step)) << truncatedBits) }
