package clientstats_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/DataDog/sketches-go/ddsketch/mapping"
	"github.com/DataDog/sketches-go/ddsketch/pb/sketchpb"
	"github.com/DataDog/sketches-go/ddsketch/store"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"github.com/spanstatsd/spanstatsd/internal/decode/clientstats"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"google.golang.org/protobuf/proto"
)

// tracersDurations are the durations in each file in testdata/sketches, except for the empty ones.
// The files were written by the tracers' libraries with the tracers' parameters: sketches-java
// 0.8.3, ddsketch 3.0.1 (Python), sketches-js 2.1.1.
var tracersDurations = []float64{0, 1, 1, 1000, 1500, 123_456, 1e6, 1.1e6, 5e6, 2e9, 6e10}

// TestSketches_OtherLanguages reads sketches of other languages. It checks that the mapping is accepted,
// and that all durations that the tracer has not collapsed are in the correct bins.
func TestSketches_OtherLanguages(t *testing.T) {
	files, err := filepath.Glob("testdata/sketches/*")
	if err != nil || len(files) != 6 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		encoded, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		group, err := read(t, encoded)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		index, err := group.Mapping.Library()
		if err != nil {
			t.Fatal(err)
		}
		var durations []float64
		for bin, spans := range binsOf(&group.OK) {
			for range spans {
				durations = append(durations, index.Value(bin))
			}
		}
		if strings.Contains(file, "empty") {
			if len(durations) != 0 {
				t.Errorf("%s: %v", file, durations)
			}
			continue
		}
		slices.Sort(durations)
		if len(durations) != len(tracersDurations) || group.OK.Zeros != 1 {
			t.Fatalf("%s: %v", file, durations)
		}
		const collapsed = 6 // maximum, of 11 durations
		for i, d := range tracersDurations[collapsed:] {
			if got := durations[collapsed+i]; math.Abs(got/d-1) > .03 {
				t.Errorf("%s: %v for %v", file, got, d)
			}
		}
	}
}

// read returns the group of a payload that contains a sketch twice, for successful spans and for
// errors.
func read(t testing.TB, encoded []byte) (aggregate.Group, error) {
	t.Helper()
	var p clientstats.Payload
	body := statsOf(t, func(_, _, group object) {
		group["OkSummary"], group["ErrorSummary"] = encoded, encoded
	})
	if err := p.Read(body, span.Origin{}); err != nil {
		return aggregate.Group{}, err
	}
	return p.Groups[0], nil
}

// binsOf returns the number of spans by bin; -1 is the bin for zeros.
func binsOf(s *sketch.Bins) map[int]uint64 {
	all := map[int]uint64{}
	if s.Zeros > 0 {
		all[-1] = s.Zeros
	}
	for _, bin := range s.List {
		all[int(bin.Index)] += bin.Spans
	}
	return all
}

// TestSketches_AgreeWithLibrary compares the bins of random sketches, with all mappings and
// stores of the library, with those that the library reads.
func TestSketches_AgreeWithLibrary(t *testing.T) {
	var mappings []mapping.IndexMapping
	for _, accuracy := range []float64{.005, .00775, 1. / 128, .01, .02, .1} {
		for _, make := range []func(float64) (mapping.IndexMapping, error){
			func(a float64) (mapping.IndexMapping, error) { return mapping.NewLogarithmicMapping(a) },
			func(a float64) (mapping.IndexMapping, error) {
				return mapping.NewLinearlyInterpolatedMapping(a)
			},
			func(a float64) (mapping.IndexMapping, error) {
				return mapping.NewCubicallyInterpolatedMapping(a)
			},
		} {
			m, err := make(accuracy)
			if err != nil {
				t.Fatal(err)
			}
			mappings = append(mappings, m)
		}
	}
	stores := []store.Provider{
		store.DenseStoreConstructor, store.SparseStoreConstructor, store.BufferedPaginatedStoreConstructor,
		func() store.Store { return store.NewCollapsingLowestDenseStore(1024) },
	}
	rnd := rand.New(rand.NewPCG(5, 6))
	for i := range 2000 {
		m := mappings[rnd.IntN(len(mappings))]
		written := ddsketch.NewDDSketchFromStoreProvider(m, stores[i%len(stores)])
		for range rnd.IntN(60) {
			if err := written.AddWithCount(float64(rnd.Uint64()>>6>>rnd.IntN(58)),
				float64(1+rnd.IntN(1000))); err != nil {
				t.Fatal(err)
			}
		}
		encoded := marshal(t, written.ToProto())
		group, err := read(t, encoded)
		if err != nil {
			t.Fatalf("%+v: %v", m, err)
		}
		var message sketchpb.DDSketch
		if err := proto.Unmarshal(encoded, &message); err != nil {
			t.Fatal(err)
		}
		agents, err := ddsketch.FromProto(&message)
		if err != nil {
			t.Fatal(err)
		}
		want := map[int]uint64{}
		if zeros := agents.GetZeroCount(); zeros > 0 {
			want[-1] = uint64(zeros)
		}
		agents.GetPositiveValueStore().ForEach(func(index int, count float64) bool {
			want[index] = uint64(count)
			return false
		})
		if got := binsOf(&group.OK); !reflect.DeepEqual(got, want) {
			t.Fatalf("%s\n got %v\nwant %v", fmt.Sprintf("%+v", m), got, want)
		}
		if library, err := group.Mapping.Library(); err != nil || !library.Equals(m) {
			t.Fatalf("mapping %+v, want %+v", group.Mapping, m)
		}
	}
}

// FuzzSketch compares the number of spans in arbitrary input with the protobuf library.
func FuzzSketch(f *testing.F) {
	f.Add(sketchBytes(f, 1, 2, 1e9))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, encoded []byte) {
		group, err := read(t, encoded)
		if err != nil {
			return
		}
		var reference sketchpb.DDSketch
		if err := proto.Unmarshal(encoded, &reference); err != nil {
			t.Fatalf("protobuf does not read it: %v", err)
		}
		want, got := reference.ZeroCount, float64(group.OK.Zeros)
		for _, n := range reference.PositiveValues.GetContiguousBinCounts() {
			want += n
		}
		for _, n := range reference.PositiveValues.GetBinCounts() {
			want += n
		}
		for _, bin := range group.OK.List {
			got += float64(bin.Spans)
		}
		if got != want {
			t.Errorf("%v spans, protobuf finds %v", got, want)
		}
	})
}
