package sketch

import (
	"flag"
	"math"
	"math/rand/v2"
	"testing"
)

var durations = flag.Int("durations", comparedDurations, "random durations whose bins and buckets are "+
	"compared with the library's and a logarithm's")

// truncate is what the agent's code does to a duration before its sketch sees it.
func truncate(nanoseconds uint64) float64 {
	return math.Float64frombits(math.Float64bits(float64(nanoseconds)) & 0xfffff80000000000)
}

// binOf is the agent's bin of a duration that is not 0.
func binOf(nanoseconds uint64) uint { return uint(AgentGrid().bins[AgentGrid().cellOf(nanoseconds)]) }

// grids are both, by name.
var grids = map[string]*Grid{"agent": AgentGrid(), "common": CommonGrid()}

// bucketByDefinition finds a bucket by its bounds, of which the upper one belongs to it.
func bucketByDefinition(nanoseconds float64) int {
	bucket := bucketOf(nanoseconds)
	lower, upper := math.Exp2(float64(bucket)/32)*1e9, math.Exp2(float64(bucket+1)/32)*1e9
	switch {
	case nanoseconds <= lower:
		return bucket - 1
	case nanoseconds > upper:
		return bucket + 1
	}
	return bucket
}

// TestBinTable_Agrees compares the bins of both grids with the library's mapping, and the
// buckets of the common one with their bounds, for every value that truncation can leave
// of a duration, and for durations of every size. `make bench-sketch` does the same for a
// hundred million.
func TestBinTable_Agrees(t *testing.T) {
	for index := range truncatedDurations {
		value := truncatedDuration(index)
		if value != truncate(uint64(value)) && value < 1<<63 && value == math.Trunc(value) {
			t.Fatalf("index %d stands for %v, which truncation does not leave", index, value)
		}
		for name, g := range grids {
			if got, want := int(g.bins[g.cells[index]]), logarithmic.Index(value); got != want {
				t.Fatalf("%s: %v is in bin %d, want %d", name, value, got, want)
			}
		}
		if got, want := int(CommonGrid().buckets[CommonGrid().cells[index]]),
			bucketByDefinition(value); got != want {
			t.Fatalf("%v is in bucket %d, want %d", value, got, want)
		}
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	common := CommonGrid()
	check := func(nanoseconds uint64) {
		value := truncate(nanoseconds)
		bin, cell := logarithmic.Index(value), common.cellOf(nanoseconds)
		if int(binOf(nanoseconds)) != bin || int(common.bins[cell]) != bin ||
			int(common.buckets[cell]) != bucketOf(value) {
			t.Fatalf("%d ns is in bins %d and %d and in bucket %d, want %d and %d",
				nanoseconds, binOf(nanoseconds), common.bins[cell], common.buckets[cell], bin,
				bucketOf(value))
		}
	}
	for shift := range 64 {
		for _, near := range []uint64{0, 1, 2} {
			check(max(1, 1<<shift+near))
			check(max(1, 1<<shift-near))
		}
	}
	check(math.MaxUint64)
	for range *durations {
		check(max(1, rnd.Uint64()>>rnd.IntN(64)))
	}
	if lowest, highest := binOf(1), binOf(math.MaxUint64); lowest != 0 || highest != allBins-1 {
		t.Errorf("durations have the bins %d to %d, want 0 to %d", lowest, highest, allBins-1)
	}
}

// All prefixes of a truncated float64 that belong to a duration have an entry with the library's
// bin. The others (negative, below one nanosecond, above 2^64, infinite) have no entry.
func TestBinTable_EveryPrefix(t *testing.T) {
	for prefix := range uint64(1 << 21) {
		value := math.Float64frombits(prefix << truncatedBits)
		entry := prefix - one // wraps around below one
		if inside := value >= 1 && value <= math.Exp2(64); inside != (entry < uint64(truncatedDurations)) {
			t.Fatalf("prefix %#x of %v: entry %d of %d", prefix, value, int64(entry), truncatedDurations)
		}
		if g := AgentGrid(); entry < uint64(truncatedDurations) &&
			int(g.bins[g.cells[entry]]) != logarithmic.Index(value) {
			t.Fatalf("prefix %#x of %v: bin %d", prefix, value, g.bins[g.cells[entry]])
		}
	}
}

// TestCells_Coarsest: going up through all values, the cell
// of the common grid changes when the bin or the bucket does, and only then; a page has the
// cells of the 64 bins that it has in the agent's grid; and there are few cells more than
// bounds of both.
func TestCells_Coarsest(t *testing.T) {
	g, agent := CommonGrid(), AgentGrid()
	cells := 1
	for index := range truncatedDurations {
		if page, bins := g.cells[index]/pageCells, agent.cells[index]/pageCells; page != bins {
			t.Fatalf("the cell of %v is in page %d, want %d", truncatedDuration(index), page, bins)
		}
		for _, g := range grids {
			cell := uint(g.cells[index])
			if rank := g.rank(cell); cell%pageCells >= g.cellsPerPage || g.cellAt(rank) != cell || rank > cell {
				t.Fatalf("cell %d of %v has the rank %d", cell, truncatedDuration(index), rank)
			}
		}
		if index == 0 {
			continue
		}
		before, cell := g.cells[index-1], g.cells[index]
		if before > cell {
			t.Fatalf("the cell of %v is below that of %v", truncatedDuration(index), truncatedDuration(index-1))
		}
		bins := logarithmic.Index(truncatedDuration(index-1)) != logarithmic.Index(truncatedDuration(index))
		buckets := bucketOf(truncatedDuration(index-1)) != bucketOf(truncatedDuration(index))
		if (before != cell) != (bins || buckets) {
			t.Fatalf("between %v and %v the bin changes: %t, the bucket: %t, and the cells are %d and %d",
				truncatedDuration(index-1), truncatedDuration(index), bins, buckets, before, cell)
		}
		if before != cell {
			cells++
		}
	}
	if cells > allBins+allBuckets {
		t.Errorf("%d cells for %d bins and %d buckets", cells, allBins, allBuckets)
	}
	if agent.rank(uint(agent.cells[truncatedDurations-1])) != allBins-1 {
		t.Errorf("the agent's grid has other cells than its bins")
	}
}

// TestBuckets_NoValueNearBound checks that a different way to compute the logarithm gives the same
// bucket of each value, at any scale. It tests the finest scale, whose bounds include those of all
// others.
func TestBuckets_NoValueNearBound(t *testing.T) {
	const rounding = 1e-9 // far more than a logarithm of float64 can be wrong by
	for index := range truncatedDurations {
		exact := math.Log2(truncatedDuration(index)/1e9) * (1 << MaxScale)
		if distance := math.Abs(exact - math.Round(exact)); distance < rounding {
			t.Fatalf("%v ns is %v of a bucket's width from a bound", truncatedDuration(index), distance)
		}
	}
	if lowest, highest := bucketOf(1), bucketOf(math.MaxUint64); lowest != lowestBucket ||
		highest != lowestBucket+allBuckets-1 {
		t.Errorf("durations have the buckets %d to %d", lowest, highest)
	}
}

// TestTruncate_LeavesTenBits checks that truncation rounds down, like the agent, for durations of
// every size.
func TestTruncate_LeavesTenBits(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 6))
	for _, fixed := range []uint64{0, 1, 1023, 1024, 1025, 1 << 40, 1<<40 + 1<<30, math.MaxUint64} {
		for _, ns := range []uint64{fixed, fixed >> 1, rnd.Uint64() >> rnd.IntN(64)} {
			if got := Truncate(ns); got != truncate(ns) {
				t.Errorf("%d is truncated to %v, want %v", ns, got, truncate(ns))
			}
		}
	}
}
