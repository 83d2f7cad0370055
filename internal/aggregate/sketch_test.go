package aggregate

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/DataDog/sketches-go/ddsketch/mapping"
)

// TestBinTableAgrees compares the table with the library's mapping for every value
// that truncation can leave of a duration, and for durations of every size.
func TestBinTableAgrees(t *testing.T) {
	library, err := mapping.NewLogarithmicMapping(0.01)
	if err != nil {
		t.Fatal(err)
	}
	truncate := func(nanoseconds uint64) float64 {
		return math.Float64frombits(math.Float64bits(float64(nanoseconds)) & 0xfffff80000000000)
	}
	for i := range binTable {
		value := math.Float64frombits((one + uint64(i)) << 43)
		if value != truncate(uint64(value)) && value < 1<<63 && value == math.Trunc(value) {
			t.Fatalf("entry %d stands for %v, which truncation does not leave", i, value)
		}
		if got, want := int(binTable[i]), library.Index(value); got != want {
			t.Fatalf("%v is in bin %d, want %d", value, got, want)
		}
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	check := func(nanoseconds uint64) {
		if got, want := binOf(nanoseconds), library.Index(truncate(nanoseconds)); got != want {
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
	for range comparedDurations {
		check(max(1, rnd.Uint64()>>rnd.IntN(64)))
	}
}

func BenchmarkBin(b *testing.B) {
	library, err := mapping.NewLogarithmicMapping(0.01)
	if err != nil {
		b.Fatal(err)
	}
	durations := make([]uint64, 1024)
	for i := range durations {
		durations[i] = 1e6 + uint64(rand.ExpFloat64()*2e7)
	}
	sum := 0
	b.Run("table", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			sum += binOf(durations[i%1024])
		}
	})
	b.Run("library", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			sum += library.Index(math.Float64frombits(math.Float64bits(float64(durations[i%1024])) & 0xfffff80000000000))
		}
	})
	if sum == 0 {
		b.Error("nothing was looked up")
	}
}
