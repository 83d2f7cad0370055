package sketch

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/DataDog/sketches-go/ddsketch"
	"golang.org/x/sys/unix"
)

// The benchmarks of `make bench-sketch`. Each runs our code and the library's in
// turns within one loop, so that what else the machine does meets both, and
// reports the CPU time of each a span and the ratio of the two. Only that travels.

// spans is how many durations a turn counts; keys in how many sketches.
const (
	turn = 1 << 14
	keys = 64
)

// threadTime is the CPU time of this thread.
func threadTime() time.Duration {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// sideBySide runs both in turns.
func sideBySide(b *testing.B, ours, library func(durations []uint64)) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	rnd := rand.New(rand.NewPCG(1, 2))
	durations := make([]uint64, turn)
	for i := range durations {
		durations[i] = shapes["web"](rnd)
	}
	var spent [2]time.Duration
	turns := 0
	for b.Loop() {
		for i, run := range []func([]uint64){ours, library} {
			began := threadTime()
			run(durations)
			spent[i] += threadTime() - began
		}
		turns++
	}
	each := float64(turns) * turn
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(spent[0])/each, "ours-ns/span")
	b.ReportMetric(float64(spent[1])/each, "library-ns/span")
	b.ReportMetric(float64(spent[0])/float64(spent[1]), "ratio")
}

func BenchmarkSketchBin(b *testing.B) {
	sum, g := uint(0), AgentGrid()
	sideBySide(b, func(durations []uint64) {
		for _, ns := range durations {
			sum += g.cellOf(ns)
		}
	}, func(durations []uint64) {
		for _, ns := range durations {
			sum += uint(logarithmic.Index(truncate(ns)))
		}
	})
	if sum == 0 {
		b.Error("nothing was looked up")
	}
}

func BenchmarkSketchAdd(b *testing.B) {
	arena := NewArena(NewMemory(64<<20, AgentGrid()))
	var stores [keys]Store
	var libraries [keys]*ddsketch.DDSketch
	for i := range libraries {
		libraries[i] = newLibrarySketch()
	}
	sideBySide(b, func(durations []uint64) {
		for i, ns := range durations {
			stores[i%keys].Add(&arena, ns)
		}
	}, func(durations []uint64) {
		for i, ns := range durations {
			_ = libraries[i%keys].Add(truncate(ns))
		}
	})
}
