package aggregate

import (
	"math"
	"math/rand/v2"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
)

// newLibrarySketch returns a sketch of the library, configured as in the agent.
func newLibrarySketch() *ddsketch.DDSketch {
	s, err := ddsketch.LogCollapsingLowestDenseDDSketch(sketch.RelativeAccuracy, 2048)
	if err != nil {
		panic(err)
	}
	return s
}

// truncate truncates a duration to ten significant bits, as the agent does before it adds the duration to a sketch.
func truncate(nanoseconds uint64) float64 {
	return math.Float64frombits(math.Float64bits(float64(nanoseconds)) & 0xfffff80000000000)
}

// content is the content of a sketch: the number of spans by bin, and under noBin the number of spans that are too short
// for a bin.
type content map[int]float64

const noBin = -1

func libraryContent(s *ddsketch.DDSketch) content {
	c := content{noBin: s.GetZeroCount()}
	for bin := range s.GetPositiveValueStore().Bins() {
		c[bin.Index()] += bin.Count()
	}
	return c
}

func contentOf(s *sketch.Sketch) content {
	c := content{noBin: s.Zeros()}
	for _, r := range s.Runs(nil, 0) {
		for i, count := range s.Counts(r) {
			c[int(r.First)+i] += float64(count)
		}
	}
	return c
}

func (c content) spans() (total float64) {
	for _, spans := range c {
		total += spans
	}
	return total
}

// shapes draw durations.
var shapes = map[string]func(*rand.Rand) uint64{
	"web":    func(r *rand.Rand) uint64 { return uint64(1e6 + 20e6*r.ExpFloat64()) },
	"spread": func(r *rand.Rand) uint64 { return uint64(1e3 * math.Exp(r.Float64()*math.Log(1e7))) },
}
