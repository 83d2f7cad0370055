package aggregate

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"golang.org/x/sys/unix"
)

// threadTime is the CPU time of this thread.
func threadTime() time.Duration {
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkTableRow measures the cost of a slot in a drainer, in both grids. It compares this with
// counters of the same kind and with the library's sketches in a slice. All alternate, so that
// other load on the machine affects all of them.
func BenchmarkTableRow(b *testing.B) {
	const turn, keys = 1 << 14, 64
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var tables [2]*Table
	for i, grid := range []*sketch.Grid{sketch.AgentGrid(), sketch.CommonGrid()} {
		tables[i] = NewTable(keys, 10*time.Second, sketch.NewMemory(64<<20, grid))
		tables[i].Begin(time.Unix(1000, 0))
	}
	rows := make([]struct {
		Counts
		ok *ddsketch.DDSketch
	}, keys)
	for i := range rows {
		rows[i].ok = newLibrarySketch()
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	durations := make([]uint64, turn)
	for i := range durations {
		durations[i] = shapes["web"](rnd)
	}
	window := NewWindow(0, time.Unix(1000, 0), 10*time.Second)
	var ours [2]time.Duration
	var library time.Duration
	turns := 0
	for ; b.Loop(); turns++ {
		for t, table := range tables {
			began := threadTime()
			for i, ns := range durations {
				table.Add(&Slot{
					Key: registry.KeyID(i % keys), Duration: ns, Weight: 1, Flags: span.TopLevel,
					Place: window.Place(1001e9),
				})
			}
			ours[t] += threadTime() - began
		}
		between := threadTime()
		for i, ns := range durations {
			row := &rows[i%keys]
			row.Add(&Counts{Spans: 1, Hits: 1, TopLevel: 1, Duration: float64(ns)})
			_ = row.ok.Add(truncate(ns))
		}
		library += threadTime() - between
	}
	each := float64(turns) * turn
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(ours[0])/each, "ours-ns/span")
	b.ReportMetric(float64(ours[1])/each, "common-grid-ns/span")
	b.ReportMetric(float64(library)/each, "library-ns/span")
	b.ReportMetric(float64(ours[0])/float64(library), "ratio")
}
