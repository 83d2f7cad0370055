package sketch

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// histogramModel is a histogram by its definition: at each scale a bucket's bounds are
// powers of 2^(1/2^scale), and the upper one belongs to it.
type histogramModel struct {
	zeros, spans uint64
	values       map[float64]uint64 // seconds
}

func (m *histogramModel) add(nanoseconds float64, spans uint64) {
	if m.spans += spans; nanoseconds == 0 {
		m.zeros += spans
		return
	}
	if m.values == nil {
		m.values = map[float64]uint64{}
	}
	m.values[nanoseconds/1e9] += spans
}

// buckets tries one scale after the other.
func (m *histogramModel) buckets(most int) Buckets {
	b := Buckets{Scale: MaxScale, Zeros: m.zeros, Spans: m.spans}
	for len(m.values) > 0 {
		counts := map[int]uint64{}
		lowest, highest := math.MaxInt, math.MinInt
		for seconds, spans := range m.values {
			bucket := int(math.Ceil(math.Log2(seconds)*math.Exp2(float64(b.Scale)))) - 1
			counts[bucket] += spans
			lowest, highest = min(lowest, bucket), max(highest, bucket)
		}
		if highest-lowest < most {
			b.Offset, b.Counts = int32(lowest), make([]uint64, highest-lowest+1)
			for bucket, spans := range counts {
				b.Counts[bucket-lowest] = spans
			}
			break
		}
		b.Scale--
	}
	return b
}

func (b *Buckets) equal(other *Buckets) bool {
	return b.Scale == other.Scale && b.Offset == other.Offset && b.Zeros == other.Zeros &&
		b.Spans == other.Spans &&
		slices.Equal(b.Counts, other.Counts)
}

// TestHistogram_AgainstModel counts durations of all shapes in stores of the common grid,
// and reads several of them into one histogram: it is what the model has of the truncated
// durations, at whatever number of buckets. One histogram is used again and again.
func TestHistogram_AgainstModel(t *testing.T) {
	arena := NewArena(NewMemory(64<<20, CommonGrid()))
	var h Histogram
	scales := map[int32]bool{}
	for name, draw := range shapes {
		for _, spans := range []int{0, 1, 2, listCells, listCells + 1, 3000} {
			for seed := range uint64(4) {
				rnd := rand.New(rand.NewPCG(seed, uint64(spans)))
				var model histogramModel
				stores := make([]Store, 2)
				for range spans {
					ns := draw(rnd)
					stores[rnd.IntN(2)].Add(&arena, ns)
					model.add(truncate(ns), 1)
				}
				for i := range stores {
					stores[i].Read(&arena, &h)
				}
				for _, most := range []int{DefaultMaxBuckets, 2, 3, 7, 20, 320, 5000} {
					got, want := h.Buckets(most), model.buckets(most)
					if !got.equal(&want) {
						t.Fatalf("%s, %d spans, seed %d, %d buckets: %v, want %v", name, spans, seed, most,
							got, want)
					}
					scales[got.Scale] = true
				}
				h.Reset()
				arena.Reset()
			}
		}
	}
	for scale := int32(-6); scale <= MaxScale; scale++ {
		if !scales[scale] {
			t.Errorf("nothing had the scale %d", scale)
		}
	}
}

// TestHistogram_EveryValueHasBucket checks each value that truncation can return, at every scale.
func TestHistogram_EveryValueHasBucket(t *testing.T) {
	var h Histogram
	var model histogramModel
	g := CommonGrid()
	for index := range truncatedDurations {
		h.addCells(g, uint(g.cells[index]), []uint32{uint32(index)})
		model.add(truncatedDuration(index), uint64(index))
	}
	for most := allBuckets; most > 1; most /= 2 {
		got, want := h.Buckets(most), model.buckets(most)
		if !got.equal(&want) {
			t.Fatalf("%d buckets: %v, want %v", most, got, want)
		}
	}
}

// TestHistogram_BinsOfMappings: a bin of a tracer's mapping, or of a store in the agent's grid, is counted in the
// bucket that contains the value of the bin. A value that no duration can have is counted in the nearest bucket.
func TestHistogram_BinsOfMappings(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, m := range append(someMappings, Mapping{Gamma: 1.02, Offset: -1e4},
		Mapping{Gamma: 1.02, Offset: 300}) {
		library, err := m.Library()
		if err != nil {
			t.Fatal(err)
		}
		first, last, err := m.Range()
		if err != nil {
			t.Fatal(err)
		}
		var h Histogram
		var model histogramModel
		var bins []Bin
		for bin := first; bin <= last; bin += 1 + rnd.Int64N(40) {
			spans := rnd.Uint64N(5)
			bins = append(bins, Bin{uint16(bin), spans})
			if spans > 0 {
				model.add(min(max(library.Value(int(bin)), 1), math.Exp2(64)), spans)
			}
		}
		h.AddBins(AgentMapping, []Bin{{500, 3}}) // the mapping changes
		model.add(logarithmic.Value(500), 3)
		h.AddBins(m, bins)
		h.AddZeros(4)
		model.add(0, 4)
		if got, want := h.Buckets(5000), model.buckets(5000); !got.equal(&want) {
			t.Errorf("%+v: %v, want %v", m, got, want)
		}
	}
	var h Histogram
	var model histogramModel
	arena, store := NewArena(NewMemory(1<<20, AgentGrid())), Store{}
	for range 1000 {
		ns := shapes["spread"](rnd)
		store.Add(&arena, ns)
		model.add(logarithmic.Value(logarithmic.Index(truncate(ns))), 1)
	}
	store.Read(&arena, &h)
	if got, want := h.Buckets(160), model.buckets(160); !got.equal(&want) {
		t.Errorf("in the agent's grid: %v, want %v", got, want)
	}
}

// TestHistogram_WithoutMemory: of a store that collapsed its lowest cells early, the buckets
// above the lowest are exact, and no span is lost.
func TestHistogram_WithoutMemory(t *testing.T) {
	for name, draw := range shapes {
		for _, bytes := range []int{0, ChunkBytes} {
			rnd := rand.New(rand.NewPCG(3, uint64(bytes)))
			arena := NewArena(NewMemory(bytes, CommonGrid()))
			for arena.next > 0 && arena.next < chunkCounters-2*uint32(arena.grid.cellsPerPage) {
				arena.newPage()
			}
			var store Store
			var model histogramModel
			for range 3000 {
				ns := draw(rnd)
				store.Add(&arena, ns)
				model.add(truncate(ns), 1)
			}
			var h Histogram
			store.Read(&arena, &h)
			got, want := h.Buckets(5000), model.buckets(5000)
			if got.Zeros != want.Zeros || got.Spans != want.Spans || got.Scale != want.Scale {
				t.Fatalf("%s: %v, want %v", name, got, want)
			}
			if len(want.Counts) > 0 {
				above := len(got.Counts) - 1
				if above < 0 || !slices.Equal(got.Counts[1:], want.Counts[len(want.Counts)-above:]) {
					t.Errorf("%s, %d bytes: %v is not the top of %v", name, bytes, got, want)
				}
			}
		}
	}
}

// TestHistogram_LargestCounts adds counts that no cycle can reach.
func TestHistogram_LargestCounts(t *testing.T) {
	var h Histogram
	h.AddBins(AgentMapping, []Bin{{5, 1 << 62}, {6, 1 << 62}})
	h.AddZeros(1 << 62)
	if got := h.Buckets(2); got.Spans != 3<<62 ||
		fmt.Sprint(got.Counts) != fmt.Sprint([]uint64{1 << 62, 1 << 62}) {
		t.Errorf("%v", got)
	}
}

// TestBuckets_AddUp: the sum of histograms of parts of the spans equals the histogram of all spans, for any scales and in
// any order.
func TestBuckets_AddUp(t *testing.T) {
	var part, complete Histogram
	lowered := 0
	for name, draw := range shapes {
		for seed := range uint64(20) {
			rnd := rand.New(rand.NewPCG(seed, 5))
			most := []int{DefaultMaxBuckets, 2, 9, 40}[seed%4]
			total := Buckets{Scale: MaxScale}
			complete.Reset()
			for range 1 + rnd.IntN(12) {
				arena, store := NewArena(NewMemory(1<<20, CommonGrid())), Store{}
				narrow := rnd.IntN(60)
				for range rnd.IntN(100) {
					ns := draw(rnd)
					if seed%3 == 0 {
						ns = uint64(1000+10*rnd.IntN(20))<<narrow/100 + uint64(rnd.IntN(2)) // neighbors
					}
					store.Add(&arena, ns)
				}
				part.Reset()
				store.Read(&arena, &part)
				store.Read(&arena, &complete)
				b := part.Buckets(most + rnd.IntN(100))
				if len(total.Counts) > 0 && len(b.Counts) > 0 && b.Scale != total.Scale {
					lowered++
				}
				total.Add(&b, most)
				if want := complete.Buckets(most); !total.equal(&want) {
					t.Fatalf("%s, seed %d: %v, want %v", name, seed, total, want)
				}
			}
		}
	}
	if lowered < 50 {
		t.Errorf("only %d times the scales differed", lowered)
	}
}

// TestBuckets_UnchangedByLaterDurations: buckets do not change when durations are added later.
func TestBuckets_UnchangedByLaterDurations(t *testing.T) {
	var total Buckets
	one := Buckets{Scale: 5, Offset: 7, Counts: []uint64{1, 2}, Spans: 3}
	total.Add(&one, 160)
	total.Add(&one, 160)
	if one.Counts[0] != 1 || total.Counts[1] != 4 || total.Spans != 6 {
		t.Errorf("%v added twice is %v", one, total)
	}
}
