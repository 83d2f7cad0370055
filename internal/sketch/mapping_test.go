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
		if first < 0 || int64(last) > m.LastBin() && m != OwnMapping {
			t.Errorf("%+v: durations have the bins %d to %d, and there are %d", m, first, last, m.LastBin())
		}
		if m == OwnMapping && library.Index(18*365*24*3600e9) > int(m.LastBin()) {
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
		OwnMapping,
		{Gamma: 1.0108892860517005, Interpolation: 1},
		{Gamma: python.ToProto().Gamma},
		{Gamma: cubic.ToProto().Gamma, Offset: cubic.ToProto().IndexOffset, Interpolation: 3},
	}
}()
