package sketch

import (
	"flag"
	"math"
	"math/rand/v2"
	"testing"
)

var durations = flag.Int("durations", comparedDurations, "random durations whose bins are compared with the library's")

// truncate is what the agent's code does to a duration before its sketch sees it.
func truncate(nanoseconds uint64) float64 {
	return math.Float64frombits(math.Float64bits(float64(nanoseconds)) & 0xfffff80000000000)
}

// TestBinTableAgrees compares the table with the library's mapping for every value
// that truncation can leave of a duration, and for durations of every size. `make
// bench-sketch` does the same for a hundred million.
func TestBinTableAgrees(t *testing.T) {
	for i := range steps {
		value := math.Float64frombits((one + uint64(i)) << 43)
		if value != truncate(uint64(value)) && value < 1<<63 && value == math.Trunc(value) {
			t.Fatalf("entry %d stands for %v, which truncation does not leave", i, value)
		}
		if got, want := int(binTable[i]), logarithmic.Index(value); got != want {
			t.Fatalf("%v is in bin %d, want %d", value, got, want)
		}
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	check := func(nanoseconds uint64) {
		if got, want := int(binOf(nanoseconds)), logarithmic.Index(truncate(nanoseconds)); got != want {
			t.Fatalf("%d ns is in bin %d, want %d", nanoseconds, got, want)
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

// Of all prefixes that truncation leaves of a float64, those of a duration have an
// entry, and the library's bin; the others (negative, below one nanosecond, beyond
// 2^64, infinite) have none.
func TestEveryPrefixIsADurationOrOutside(t *testing.T) {
	for prefix := range uint64(1 << 21) {
		value := math.Float64frombits(prefix << truncatedBits)
		entry := prefix - one // wraps around below one
		if inside := value >= 1 && value < math.Exp2(65); inside != (entry < uint64(steps)) {
			t.Fatalf("prefix %#x of %v: entry %d of %d", prefix, value, int64(entry), steps)
		}
		if entry < uint64(steps) && int(binTable[entry]) != logarithmic.Index(value) {
			t.Fatalf("prefix %#x of %v: bin %d", prefix, value, binTable[entry])
		}
	}
}
