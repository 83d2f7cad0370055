package aggregate

import (
	"math"
	"math/rand/v2"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/spanstatsd/spanstatsd/internal/sketch"
)

// newLibrarySketch is the one that the agent's code makes for each aggregate.
func newLibrarySketch() *ddsketch.DDSketch {
	s, err := ddsketch.LogCollapsingLowestDenseDDSketch(sketch.RelativeAccuracy, 2048)
	if err != nil {
		panic(err)
	}
	return s
}

// truncate is what the agent's code does to a duration before its sketch sees it.
func truncate(nanoseconds uint64) float64 {
	return math.Float64frombits(math.Float64bits(float64(nanoseconds)) & 0xfffff80000000000)
}

// content is a sketch in a form that can be compared.
type content struct {
	zeros float64
	bins  []bin
}

type bin struct {
	index int32
	count float64
}

func libraryContent(s *ddsketch.DDSketch) content {
	c := content{zeros: s.GetZeroCount()}
	s.GetPositiveValueStore().ForEach(func(index int, count float64) bool {
		c.bins = append(c.bins, bin{int32(index), count})
		return false
	})
	return c
}

func contentOf(s *sketch.Sketch) content {
	c := content{zeros: s.Zeros()}
	for _, r := range s.AppendRuns(nil, 0) {
		for i, count := range s.Counts(r) {
			c.bins = append(c.bins, bin{r.First + int32(i), float64(count)})
		}
	}
	return c
}

func (c content) spans() (total float64) {
	total = c.zeros
	for _, b := range c.bins {
		total += b.count
	}
	return total
}

// shapes draw durations.
var shapes = map[string]func(*rand.Rand) uint64{
	"web":    func(r *rand.Rand) uint64 { return uint64(1e6 + 20e6*r.ExpFloat64()) },
	"spread": func(r *rand.Rand) uint64 { return uint64(1e3 * math.Exp(r.Float64()*math.Log(1e7))) },
}
