package flush

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/pb/sketchpb"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"google.golang.org/protobuf/proto"
)

// agentSketch is what the agent's code keeps of the same durations.
func agentSketch(t testing.TB, durations []uint64) *ddsketch.DDSketch {
	t.Helper()
	s, err := ddsketch.LogCollapsingLowestDenseDDSketch(0.01, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for _, ns := range durations {
		value := math.Float64frombits(math.Float64bits(float64(ns)) & 0xfffff80000000000)
		if err := s.Add(value); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func ourSketch(durations []uint64) *aggregate.Sketch {
	s := aggregate.NewSketch()
	for _, ns := range durations {
		s.Add(ns)
	}
	return s
}

// durations of each shape that decides between the two forms of a store.
func shapes() map[string][]uint64 {
	random := rand.New(rand.NewPCG(1, 2))
	many := func(n int, draw func() uint64) (all []uint64) {
		for range n {
			all = append(all, draw())
		}
		return all
	}
	return map[string][]uint64{
		"one":        {1_234_567},
		"index zero": {1},
		"zeros":      {0, 0, 0},
		"zero too":   {0, 50_000, 50_100},
		"the ends":   {1, math.MaxUint64},
		"dense":      many(5000, func() uint64 { return uint64(1e6 + 20e6*random.ExpFloat64()) }),
		"sparse":     many(20, func() uint64 { return random.Uint64() >> random.IntN(64) }),
		"wide":       many(20000, func() uint64 { return random.Uint64() >> random.IntN(64) }),
	}
}

// bins reads a decoded sketch as the receiver sees it.
func bins(s *ddsketch.DDSketch) map[int]float64 {
	counts := map[int]float64{}
	s.GetPositiveValueStore().ForEach(func(index int, count float64) bool {
		counts[index] = count
		return false
	})
	return counts
}

func TestSketchIsBinForBinTheAgents(t *testing.T) {
	for name, durations := range shapes() {
		t.Run(name, func(t *testing.T) {
			raw := newSketchEncoder().append(nil, ourSketch(durations))
			want := agentSketch(t, durations)
			agents, err := proto.Marshal(want.ToProto())
			if err != nil {
				t.Fatal(err)
			}
			var message sketchpb.DDSketch
			if err := proto.Unmarshal(raw, &message); err != nil {
				t.Fatal(err)
			}
			if got, want := message.Mapping, want.ToProto().Mapping; !proto.Equal(got, want) {
				t.Errorf("mapping %v, want %v", got, want)
			}
			got, err := ddsketch.FromProto(&message)
			if err != nil {
				t.Fatal(err)
			}
			if fmt.Sprint(bins(got)) != fmt.Sprint(bins(want)) || got.GetZeroCount() != want.GetZeroCount() {
				t.Errorf("bins %v and %v zeros, want %v and %v", bins(got), got.GetZeroCount(), bins(want), want.GetZeroCount())
			}
			if len(raw) > len(agents) {
				t.Errorf("%d bytes, the agent's code sends %d", len(raw), len(agents))
			}
			if len(message.PositiveValues.BinCounts) == 0 && !bytes.Equal(raw, agents) {
				t.Errorf("dense, but not the agent's bytes:\n% x\n% x", raw, agents)
			}
		})
	}
}

func TestSketchTakesTheSmallerForm(t *testing.T) {
	for name, sparse := range map[string]bool{"dense": false, "the ends": true, "one": false} {
		var message sketchpb.DDSketch
		if err := proto.Unmarshal(newSketchEncoder().append(nil, ourSketch(shapes()[name])), &message); err != nil {
			t.Fatal(err)
		}
		if got := len(message.PositiveValues.BinCounts) > 0; got != sparse {
			t.Errorf("%s: sparse %v, want %v", name, got, sparse)
		}
	}
}

func TestEmptySketchIsWhatTheAgentSends(t *testing.T) {
	want, err := proto.Marshal(agentSketch(t, nil).ToProto())
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*aggregate.Sketch{"none": nil, "empty": aggregate.NewSketch()} {
		if got := newSketchEncoder().append(nil, s); !bytes.Equal(got, want) || len(got) != 15 {
			t.Errorf("%s: % x, want % x", name, got, want)
		}
	}
}

// The announced sizes decide which form is sent and stand in front of it.
func TestStoreSizesAreExact(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		var all []bin
		index := int32(random.IntN(5000) - 2500)
		for range 1 + random.IntN(50) {
			all = append(all, bin{index, 1})
			index += 1 + int32(random.IntN(20))
		}
		if got := len(appendDense(nil, all)); got != denseSize(all) {
			t.Fatalf("dense form of %v: %d bytes, announced %d", all, got, denseSize(all))
		}
		if got := len(appendSparse(nil, all)); got != sparseSize(all) {
			t.Fatalf("sparse form of %v: %d bytes, announced %d", all, got, sparseSize(all))
		}
	}
}
