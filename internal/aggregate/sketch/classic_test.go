package sketch

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// classicModel is what classic buckets count by their definition.
func classicModel(bounds []float64, values []float64) []uint64 {
	counts := make([]uint64, len(bounds)+1)
	for _, nanoseconds := range values {
		at := 0
		for at < len(bounds) && nanoseconds/1e9 > bounds[at] {
			at++
		}
		counts[at]++
	}
	return counts
}

// connectorBounds are those of the Collector's spanmetrics connector.
var connectorBounds = []float64{
	.002, .004, .006, .008, .01, .05, .1, .2, .4, .8, 1, 1.4, 2, 5, 10, 15,
}

// randomBounds are spread over all durations, close together, or as near to values that
// truncation leaves as can be.
func randomBounds(rnd *rand.Rand) (bounds []float64) {
	middle, width := rnd.Float64()*40-20, []float64{40, 3, .1, .001}[rnd.IntN(4)]
	for range 1 + rnd.IntN(MaxBounds) {
		bound := math.Exp(middle + width*(rnd.Float64()-.5))
		if rnd.IntN(2) == 0 {
			bound = Truncate(uint64(bound*1e9)+1) / 1e9
			bound = []float64{
				bound, math.Nextafter(bound, 0),
				math.Nextafter(bound, math.Inf(1)),
			}[rnd.IntN(3)]
		}
		bounds = append(bounds, bound)
	}
	slices.Sort(bounds)
	return slices.Compact(bounds)
}

// TestClassic_AgainstModel counts durations of all shapes in stores of grids with bounds of all
// kinds, and reads several into one: the classic buckets are the model's of the truncated
// durations, and sketch and histogram are the same as in the common grid.
func TestClassic_AgainstModel(t *testing.T) {
	pages := map[uint]int{}
	for seed := range uint64(40) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		bounds := randomBounds(rnd)
		if seed == 0 {
			bounds = connectorBounds
		}
		g, err := GridWith(bounds)
		if err != nil {
			t.Fatal(err)
		}
		if pages[g.cellsPerPage]++; seed == 0 && g.cellsPerPage != commonCells {
			t.Errorf("the bounds of the connector need pages of %d cells", g.cellsPerPage)
		}
		arena, common := NewArena(NewMemory(64<<20, g)), NewArena(NewMemory(64<<20, CommonGrid()))
		classic := NewClassic(bounds)
		for name, draw := range shapes {
			for _, spans := range []int{0, 1, listCells + 1, 3000} {
				stores, others, values := make([]Store, 2), make([]Store, 2), []float64{}
				for range spans {
					ns, at := draw(rnd), rnd.IntN(2)
					if rnd.IntN(2) == 0 { // near a bound
						ns = uint64(bounds[rnd.IntN(len(bounds))]*1e9*(1+.003*rnd.NormFloat64())) +
							uint64(rnd.IntN(2))
					}
					stores[at].Add(&arena, ns)
					others[at].Add(&common, ns)
					values = append(values, truncate(ns))
				}
				var sketches [2]Sketch
				var histograms [2]Histogram
				for i := range stores {
					stores[i].Read(&arena, classic)
					stores[i].Read(&arena, &sketches[0])
					stores[i].Read(&arena, &histograms[0])
					others[i].Read(&common, &sketches[1])
					others[i].Read(&common, &histograms[1])
				}
				if got, want := classic.Counts(), classicModel(bounds, values); !slices.Equal(got, want) {
					t.Fatalf("seed %d, %s, %d spans: %v, want %v of %v", seed, name, spans, got, want, bounds)
				}
				classic.Reset()
				if a, b := sketches[0].content(), sketches[1].content(); !slices.Equal(a.bins, b.bins) {
					t.Fatalf("seed %d, %s: the bins are %v, want %v", seed, name, a, b)
				}
				if a, b := histograms[0].Buckets(5000), histograms[1].Buckets(5000); !a.equal(&b) {
					t.Fatalf("seed %d, %s: the buckets are %v, want %v", seed, name, a, b)
				}
				arena.Reset()
				common.Reset()
			}
		}
	}
	if pages[commonCells] == 0 || pages[pageCells] == 0 || len(pages) != 2 {
		t.Errorf("pages of so many cells: %v", pages)
	}
}

// TestClassic_MaximumBoundsInOnePage expects 64 bounds in one page, whatever their values are.
func TestClassic_MaximumBoundsInOnePage(t *testing.T) {
	for page := range allPages - 1 {
		bounds := []float64{}
		for index := range truncatedDurations {
			g := CommonGrid()
			if int(g.cells[index])/pageCells == page && index%7 == 0 && len(bounds) < MaxBounds &&
				index > 0 && g.cells[index] == g.cells[index-1] && g.cells[index] == g.cells[index+1] {
				bounds = append(bounds, truncatedDuration(index)/1e9)
			}
		}
		g, err := GridWith(bounds)
		if err != nil || len(bounds) < MaxBounds || g.cellsPerPage != pageCells {
			t.Fatalf("page %d: %d bounds, %v", page, len(bounds), err)
		}
		for index := range truncatedDurations {
			if cell := uint(g.cells[index]); int(cell)/pageCells != logarithmic.Index(truncatedDuration(index))/pageBins {
				t.Fatalf("%v is in page %d", truncatedDuration(index), cell/pageCells)
			}
		}
	}
}

// TestClassic_AnyGrid reads stores of grids with other bounds. If the grid has all bounds of the histogram, the histogram
// is exact; otherwise, the error of a bound is at most one bin.
func TestClassic_AnyGrid(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 8))
	more := slices.Sorted(slices.Values(append([]float64{.003, .0061, .7, 3, 30}, connectorBounds...)))
	exact, err := GridWith(more)
	if err != nil {
		t.Fatal(err)
	}
	classic := NewClassic(connectorBounds)
	for range 3 {
		for _, g := range []*Grid{exact, AgentGrid(), CommonGrid()} {
			arena, store, values := NewArena(NewMemory(1<<20, g)), Store{}, []float64{}
			for range 2000 {
				ns := shapes["spread"](rnd)
				store.Add(&arena, ns)
				values = append(values, truncate(ns))
			}
			classic.Reset()
			store.Read(&arena, classic)
			got, most := classic.Counts(), classicModel(connectorBounds, values)
			if g == exact && !slices.Equal(got, most) {
				t.Fatalf("%v, want %v", got, most)
			}
			for i := range values {
				values[i] *= (1 + RelativeAccuracy) / (1 - RelativeAccuracy)
			}
			least := classicModel(connectorBounds, values)
			a, b, c := uint64(0), uint64(0), uint64(0)
			for i := range got {
				a, b, c = a+least[i], b+got[i], c+most[i]
				if b < a || b > c {
					t.Fatalf("%d up to bound %d, want %d to %d", b, i, a, c)
				}
			}
			if b != 2000 {
				t.Fatalf("%d spans of 2000", b)
			}
		}
	}
}

// TestClassic_BinsOfClients counts each bin of clients' sketches as the duration that it represents,
// including spans with a duration of 0.
func TestClassic_BinsOfClients(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 9))
	for _, m := range someMappings {
		library, err := m.Library()
		if err != nil {
			t.Fatal(err)
		}
		first, last, err := m.Range()
		if err != nil {
			t.Fatal(err)
		}
		classic, values, bins := NewClassic(connectorBounds), []float64{0, 0, 0}, []Bin{}
		for bin := first; bin <= last; bin += 1 + rnd.Int64N(9) {
			spans := rnd.Uint64N(4)
			bins = append(bins, Bin{uint16(bin), spans})
			for range spans {
				values = append(values, library.Value(int(bin)))
			}
		}
		classic.AddBins(m, bins)
		classic.AddZeros(3)
		if want := classicModel(connectorBounds, values); !slices.Equal(classic.Counts(), want) {
			t.Errorf("%+v: %v, want %v", m, classic.Counts(), want)
		}
	}
}

// TestClassic_BoundWithinStep: truncation rounds down, so a duration above a bound by less than a step is
// counted below it. If two bounds are within one step, the bucket of the second is empty.
func TestClassic_BoundWithinStep(t *testing.T) {
	const step = 1 << 20 // nanoseconds, of durations near a second
	value := uint64(Truncate(1e9))
	bounds := []float64{float64(value) / 1e9, (float64(value) + step/2) / 1e9}
	g, err := GridWith(bounds)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		nanoseconds uint64
		bucket      int
	}{{value - 1, 0}, {value, 0}, {value + step/2, 0}, {value + step - 1, 0}, {value + step, 2}} {
		arena, store, classic := NewArena(NewMemory(1<<20, g)), Store{}, NewClassic(bounds)
		store.Add(&arena, c.nanoseconds)
		if store.Read(&arena, classic); classic.Counts()[c.bucket] != 1 {
			t.Errorf("%d ns: %v, want it in bucket %d", c.nanoseconds, classic.Counts(), c.bucket)
		}
	}
}

// TestCollapsedCells_AgreeWithModel: without memory a store keeps its highest cells, and counts
// lower durations in the lowest of these. Classic buckets read that cell correctly, even if no
// duration belongs to it.
func TestCollapsedCells_AgreeWithModel(t *testing.T) {
	near, err := GridWith([]float64{.1, .101, .102, .103, .104, .105, .106, .107, .108, .109, .11, .111})
	if err != nil {
		t.Fatal(err)
	}
	for name, g := range map[string]*Grid{"agent": AgentGrid(), "common": CommonGrid(), "near": near} {
		classic := NewClassic(connectorBounds)
		for index := range truncatedDurations {
			value := truncatedDuration(index)
			if value != math.Trunc(value) || value >= 1<<63 || g.rank(uint(g.cells[index])) < allPages {
				continue
			}
			arena, store := NewArena(NewMemory(0, g)), Store{}
			for range listCells {
				store.Add(&arena, 1)
			}
			store.Add(&arena, uint64(value))
			var sketch Sketch
			store.Read(&arena, &sketch)
			bins, bin := sketch.content().bins, int32(logarithmic.Index(value))
			if len(bins) != 2 || bins[1].index != bin || bins[0].index < bin-allPages ||
				bins[0].count != listCells {
				t.Fatalf("%s: %v ns is in bin %d, and they are %v", name, value, bin, bins)
			}
			var histogram Histogram
			store.Read(&arena, &histogram)
			buckets, bucket := histogram.Buckets(5000), int(g.buckets[g.cells[index]])
			if len(buckets.Counts) > allPages+1 || int(buckets.Offset)+len(buckets.Counts)-1 != bucket {
				t.Fatalf("%s: %v ns is in bucket %d, and they are %v", name, value, bucket, buckets)
			}
			classic.Reset()
			store.Read(&arena, classic)
			for i, spans := range classic.Counts() {
				if spans > 0 &&
					(i > boundOf(connectorBounds, value*1.03) || i < boundOf(connectorBounds, value/2.2)) {
					t.Fatalf("%s: next to %v ns they are %v", name, value, classic.Counts())
				}
			}
		}
	}
}

// TestBounds_Invalid: invalid bounds have errors that name the problem.
func TestBounds_Invalid(t *testing.T) {
	for _, c := range []struct {
		bounds []float64
		says   string
	}{
		{[]float64{0, 1}, "not positive"},
		{[]float64{-1}, "not positive"},
		{[]float64{1, math.NaN()}, "not positive"},
		{[]float64{1, math.Inf(1)}, "remove this bound"},
		{[]float64{1, 2, 2}, "2 is not greater than 2"},
		{[]float64{1, .5}, "0.5 is not greater than 1"},
		{make([]float64, MaxBounds+1), "at most 64"},
	} {
		if _, err := GridWith(c.bounds); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: %v, want %q", c.bounds, err, c.says)
		}
	}
	for _, bounds := range [][]float64{nil, {1}, {1e-300, 5e-324 + 1, 1e300}, connectorBounds} {
		if _, err := GridWith(bounds); err != nil {
			t.Errorf("%v: %v", bounds, err)
		}
	}
	if g, _ := GridWith(nil); g != CommonGrid() {
		t.Error("a grid without bounds is not the common one")
	}
}
