package sketch

import (
	"fmt"
	"math"

	"github.com/DataDog/sketches-go/ddsketch/mapping"
	"github.com/DataDog/sketches-go/ddsketch/pb/sketchpb"
)

// Mapping defines which durations each bin of a sketch contains. Sketches with equal mappings are
// added up bin by bin, without rounding. Converting between mappings would move spans between bins,
// so tracers' sketches are kept apart by mapping. Mappings are equal only if all bits are.
type Mapping struct {
	Gamma, Offset float64
	Interpolation int32 // number of the interpolation in the format
}

// AgentMapping is the mapping of the Datadog agent, and that of every span counted by the daemon.
var AgentMapping = func() Mapping {
	m := logarithmic.ToProto()
	return Mapping{m.Gamma, m.IndexOffset, int32(m.Interpolation)}
}()

// MappingID numbers the mappings of one cycle. 0 is AgentMapping.
type MappingID uint8

// agentMappingID is the ID of AgentMapping.
const agentMappingID MappingID = 0

// MaxMappings is the maximum number of mappings per cycle. The tracers of one language share one,
// and there are about six languages.
const MaxMappings = 8

// worstAccuracy is a relative accuracy that the agent rejects.
const worstAccuracy = 0.5

// Library returns the mapping as a type of the sketches-go library, which converts between bins and
// durations. It returns an error if the mapping covers no range of durations, or if its relative
// accuracy is worse than worstAccuracy.
func (m Mapping) Library() (mapping.IndexMapping, error) {
	index, err := mapping.FromProto(&sketchpb.IndexMapping{
		Gamma: m.Gamma, IndexOffset: m.Offset,
		Interpolation: sketchpb.IndexMapping_Interpolation(m.Interpolation),
	})
	if err != nil {
		return nil, fmt.Errorf("read mapping: %w", err)
	}
	shortest, longest := index.MinIndexableValue(), index.MaxIndexableValue()
	hasRange := shortest > 0 && longest > shortest && longest <= math.MaxFloat64 // false for NaN, too
	accuracy := index.RelativeAccuracy()
	isAccurate := accuracy > 0 && accuracy < worstAccuracy
	if !hasRange || !isAccurate {
		return nil, fmt.Errorf("read mapping: gamma %v with offset %v maps no durations", m.Gamma, m.Offset)
	}
	return index, nil
}

// mustIndexMapping is like Library, for mappings whose bins were accepted.
func (m Mapping) mustIndexMapping() mapping.IndexMapping {
	index, err := m.Library()
	if err != nil {
		panic(fmt.Sprintf("BUG: bins of an invalid mapping were accepted: %v", err))
	}
	return index
}

// mappingCache keeps the last mapping in the form of the library.
type mappingCache struct {
	mapping      Mapping
	indexMapping mapping.IndexMapping
}

// indexMappingOf returns the mapping in the form of the library. It panics if the mapping is invalid.
func (c *mappingCache) indexMappingOf(m Mapping) mapping.IndexMapping {
	if c.indexMapping == nil || m != c.mapping {
		c.indexMapping = m.mustIndexMapping()
		c.mapping = m
	}
	return c.indexMapping
}

// Range returns the lowest and the highest index of a bin that the daemon accepts in the sketches of tracers. It
// excludes bins for durations above 2^64 ns, and bins from sketchBins on, for which a Sketch has no memory. Range returns
// an error if the mapping is invalid.
func (m Mapping) Range() (first, last int64, err error) {
	if m == AgentMapping {
		return 0, maxBins - 1, nil // more bins, of durations above 18 years, would be collapsed by Sketch.Runs
	}
	indexMapping, err := m.Library()
	if err != nil {
		return 0, 0, err
	}
	shortest := indexMapping.MinIndexableValue()
	longest := min(math.MaxUint64, indexMapping.MaxIndexableValue())
	first = max(0, int64(indexMapping.Index(shortest)))
	last = min(int64(indexMapping.Index(longest)), sketchBins-1)
	return first, last, nil
}

// sketchBins is the number of bins of a Sketch: those whose index takes at most two bytes in the
// format. The agent's mapping uses a quarter of them; a mapping with an accuracy of half a percent
// uses all.
const sketchBins = 1 << 13

// Bins is a distribution that a tracer has counted.
type Bins struct {
	Zeros uint64
	List  []Bin // lowest first, if sorted
}

// Mean returns the mean duration of all spans in nanoseconds, or 0 if there are none. It is an
// estimate: m assigns one duration to each bin, which Mean uses for all spans in the bin. Mean panics
// if m is invalid.
func (b *Bins) Mean(m Mapping) float64 {
	indexMapping := m.mustIndexMapping()
	spans, total := float64(b.Zeros), 0.0
	for _, bin := range b.List {
		nanoseconds := indexMapping.Value(int(bin.Index))
		spans += float64(bin.Spans)
		total += float64(bin.Spans) * nanoseconds
	}
	if spans == 0 {
		return 0
	}
	return total / spans
}

// Bin is the number of spans in one bin.
type Bin struct {
	Index uint16 // within the Range of its mapping
	Spans uint64
}

// The parameters of the agent's own sketches. The agent would accept others, but could not merge them bin
// for bin with its own. Before the agent adds a duration to a sketch, it truncates it to sign, exponent
// and nine bits of mantissa.
const (
	RelativeAccuracy = 0.01
	maxBins          = 2048 // the lowest bins beyond that are collapsed
	allBins          = 2218 // from bin 0, of 1 ns, to that of the largest uint64
)

// logarithmic is the agent's mapping.
var logarithmic = func() mapping.IndexMapping {
	m, err := mapping.NewLogarithmicMapping(RelativeAccuracy)
	if err != nil {
		panic("BUG: sketch mapping: " + err.Error())
	}
	return m
}()

const (
	truncatedBits = 43 // low bits of a float64 that truncation clears
	mantissaBits  = 9  // bits of the mantissa that it keeps
	// one is the float64 1 without its truncated bits: the shortest duration that has a bin.
	one = 1023 << mantissaBits
	// truncatedDurations is the number of truncated durations, from 1 to 2^64: 512 per power of two. 2^64 is
	// the largest uint64, rounded up.
	truncatedDurations = 64<<mantissaBits + 1
)

// truncatedIndex returns the index of a duration, which is not 0, among all truncated durations.
func truncatedIndex(nanoseconds uint64) uint16 {
	return uint16(math.Float64bits(float64(nanoseconds))>>truncatedBits - one)
}

// Truncate returns a duration as it is counted in a bin or bucket, in nanoseconds.
func Truncate(nanoseconds uint64) float64 {
	return math.Float64frombits(math.Float64bits(float64(nanoseconds)) >> truncatedBits << truncatedBits)
}

// truncatedDuration returns the truncated duration with the given index, in nanoseconds.
func truncatedDuration(index int) float64 {
	return math.Float64frombits((one + uint64(index)) << truncatedBits)
}
