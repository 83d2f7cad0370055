package sketch

import (
	"math"
	"testing"

	"github.com/DataDog/sketches-go/ddsketch/mapping"
)

// TestMappings: a mapping is one that the agent can convert to its own.
func TestMappings(t *testing.T) {
	for _, m := range someMappings {
		library, err := m.Library()
		if err != nil {
			t.Errorf("%+v: %v", m, err)
			continue
		}
		first, last := library.Index(1), library.Index(math.MaxUint64)
		_, most, err := m.Range()
		if first < 0 || int64(last) != most && m != AgentMapping || err != nil {
			t.Errorf("%+v: durations have the bins %d to %d, and there are %d: %v", m, first, last, most, err)
		}
		if m == AgentMapping && library.Index(18*365*24*3600e9) > int(most) {
			t.Errorf("eighteen years are bin %d", library.Index(18*365*24*3600e9))
		}
	}
	nan, inf := math.NaN(), math.Inf(1)
	for _, m := range []Mapping{
		{},
		{Gamma: 1},
		{Gamma: .9},
		{Gamma: nan},
		{Gamma: inf},
		{Gamma: -inf},
		{Gamma: 4},
		{Gamma: 1 + 1e-16},
		{Gamma: 1.02, Offset: nan},
		{Gamma: 1.02, Offset: inf},
		{Gamma: 1.02, Offset: -inf},
		{Gamma: 1.02, Offset: 1e300},
		{Gamma: 1.02, Interpolation: 2},
		{Gamma: 1.02, Interpolation: 4},
		{Gamma: 1.02, Interpolation: -1},
	} {
		if _, err := m.Library(); err == nil {
			t.Errorf("%+v is a mapping", m)
		}
	}
}

// TestMappings_EveryBinIsADuration: of any mapping that the agent accepts, the highest bin
// that is merged stands for a time that a span may have taken, within the mapping's
// accuracy.
func TestMappings_EveryBinIsADuration(t *testing.T) {
	tried := 0
	for accuracy := .0001; accuracy < worstAccuracy; accuracy *= 1.1 {
		for _, offset := range []float64{-1e6, -1000, 0, 1.5, 1000, 1e6} {
			for interpolation := range int32(4) {
				m := Mapping{
					Gamma: (1 + accuracy) / (1 - accuracy), Offset: offset,
					Interpolation: interpolation,
				}
				library, err := m.Library()
				if err != nil {
					continue
				}
				first, last, err := m.Range()
				if err != nil || first < 0 || last >= sketchBins {
					t.Fatalf("%+v: the bins are %d to %d: %v", m, first, last, err)
				}
				for bin := first; bin <= last; bin += 1 + (last-first)/20 {
					if value := library.Value(int(bin)); !(value < 2*math.MaxUint64) {
						t.Errorf("%+v: bin %d of %d to %d stands for %v ns", m, bin, first, last, value)
					}
				}
				if first <= last {
					tried++
				}
			}
		}
	}
	if tried < 300 {
		t.Errorf("only %d mappings have bins", tried)
	}
}

// someMappings are those of tracers: ours, dd-trace-java's, that of Python and Node,
// and a cubic one.
var someMappings = func() []Mapping {
	cubic, err := mapping.NewCubicallyInterpolatedMapping(.01)
	if err != nil {
		panic(err)
	}
	python, err := mapping.NewLogarithmicMapping(.00775)
	if err != nil {
		panic(err)
	}
	return []Mapping{
		AgentMapping,
		{Gamma: 1.0108892860517005, Interpolation: 1},
		{Gamma: python.ToProto().Gamma},
		{Gamma: cubic.ToProto().Gamma, Offset: cubic.ToProto().IndexOffset, Interpolation: 3},
	}
}()
