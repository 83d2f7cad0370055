package agent

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/pb/sketchpb"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"google.golang.org/protobuf/proto"
)

// agentSketch is a sketch of the same durations by the agent's code.
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

func ourSketch(durations []uint64, grid *sketch.Grid) *sketch.Sketch {
	arena, store, s := sketch.NewArena(sketch.NewMemory(1<<20, grid)), sketch.Store{}, &sketch.Sketch{}
	for _, ns := range durations {
		store.Add(&arena, ns)
	}
	store.Read(&arena, s)
	return s
}

// encoded is a sketch as encoded in a payload.
func encoded(s *sketch.Sketch) []byte {
	e := sketchEncoder{mappings: [][]byte{appendMapping(nil, sketch.AgentMapping)}}
	return e.encode(s, 0)
}

// durations has each shape that decides between the two forms of a store.
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

// bins returns the bins of a decoded sketch.
func bins(s *ddsketch.DDSketch) map[int]float64 {
	counts := map[int]float64{}
	s.GetPositiveValueStore().ForEach(func(index int, count float64) bool {
		counts[index] = count
		return false
	})
	return counts
}

func TestSketch_BinsAsInAgent(t *testing.T) {
	for name, durations := range shapes() {
		t.Run(name, func(t *testing.T) {
			raw := encoded(ourSketch(durations, sketch.AgentGrid()))
			if !bytes.Equal(raw, encoded(ourSketch(durations, sketch.CommonGrid()))) {
				t.Error("counted in the common grid it is another")
			}
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
				t.Errorf("bins %v and %v zeros, want %v and %v", bins(got), got.GetZeroCount(), bins(want),
					want.GetZeroCount())
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

// No other split of the runs between the two parts of a store is shorter.
func TestStore_DenseRunIsShortest(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 400 {
		var all []sketch.Run
		index := int32(random.IntN(100))
		for range random.IntN(40) {
			all = append(all, sketch.Run{First: index, End: index + 1 + int32(random.IntN(1+random.IntN(6)))})
			index = all[len(all)-1].End + 1 + int32(random.IntN(1+random.IntN(20)))
		}
		first, last := denseRange(all)
		size := len(encodedSplit(all, first, last))
		for i := range all {
			for j := i; j <= len(all); j++ {
				// The length of a range varies by two bytes with its number of bins and its offset,
				// which the split ignores.
				if smaller := len(encodedSplit(all, i, j)); smaller < size-2 {
					t.Fatalf("%v: %d bytes from %d to %d, but %d from %d to %d", all, size, first, last,
						smaller, i, j)
				}
			}
		}
	}
}

func encodedSplit(all []sketch.Run, first, last int) []byte {
	var s sketch.Sketch // empty
	return appendDense(appendSparse(appendSparse(nil, &s, all[:first]), &s, all[last:]), &s, all[first:last])
}

// Both forms of a store occur in this test.
func TestStore_DenseAndSparseForms(t *testing.T) {
	for name, outside := range map[string]bool{"one": false, "the ends": true, "dense": true} {
		var message sketchpb.DDSketch
		if err := proto.Unmarshal(encoded(ourSketch(shapes()[name], sketch.AgentGrid())),
			&message); err != nil {
			t.Fatal(err)
		}
		store := message.PositiveValues
		if len(store.ContiguousBinCounts) == 0 || len(store.BinCounts) > 0 != outside {
			t.Errorf("%s: a stretch of %d and %d single bins", name, len(store.ContiguousBinCounts),
				len(store.BinCounts))
		}
	}
}

func TestSketch_EmptyAsInAgent(t *testing.T) {
	want, err := proto.Marshal(agentSketch(t, nil).ToProto())
	if err != nil {
		t.Fatal(err)
	}
	if got := encoded(&sketch.Sketch{}); !bytes.Equal(got, want) || len(got) != 15 {
		t.Errorf("% x, want % x", got, want)
	}
}
