package aggregate

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
	"unsafe"

	"github.com/DataDog/sketches-go/ddsketch"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// TestTable_Bytes fills a table with successful and failed spans of every key in every bucket, and compares its size with
// the maximum according to the configuration.
func TestTable_Bytes(t *testing.T) {
	config := DefaultConfig()
	config.Drainers, config.MaxAggregates, config.MaxOrigins = 1, 700, 20
	table := newTestTable(config.MaxKeys())
	table.Begin(time.Unix(1000, 0))
	for key := range config.MaxKeys() {
		for bucket := range int64(windowBuckets) {
			end := (990 + 10*bucket) * int64(time.Second)
			put(table, end, Slot{Key: registry.KeyID(key), End: end, Flags: span.Error, Weight: 2})
		}
	}
	// the other half is the other cycle's
	if size, want := table.bytes(), config.TableBytes()/2; size != want {
		t.Errorf("a full table has %d bytes, want %d", size, want)
	}
}

// bytes is all that a table has set aside, but its pages.
func (t *Table) bytes() int {
	return cap(t.rows)*int(unsafe.Sizeof(row{})) + cap(t.errors)*int(unsafe.Sizeof(errorPart{})) + cap(t.index)*4
}

// BenchmarkSketchMemory counts durations with two distributions in a thousand aggregates; one span in twenty failed. It
// reports the bytes per aggregate of the table, with rows and index, for the agent's grid and for the common grid. For
// comparison, it reports the heap that sketches of the library need for the same durations, without counters, and with an
// error sketch only for aggregates with errors. (The agent creates both sketches for each aggregate.)
func BenchmarkSketchMemory(b *testing.B) {
	const aggregates = 1000
	for _, name := range []string{"web", "spread"} {
		for _, spans := range []int{1, 20, 200} {
			b.Run(fmt.Sprintf("%s/%d", name, spans), func(b *testing.B) {
				bytesPer := func(grid *sketch.Grid) float64 {
					memory := sketch.NewMemory(64<<20, grid)
					table := NewTable(aggregates, 10*time.Second, memory)
					table.Begin(time.Unix(1000, 0))
					fill(name, spans, aggregates, func(i int, ns uint64, flags span.Flags) {
						put(table, 1002e9, Slot{Key: registry.KeyID(i), End: 1001e9, Duration: ns, Flags: flags})
					})
					return float64(table.bytes()+memory.Taken()) / aggregates
				}
				for b.Loop() {
					b.ReportMetric(bytesPer(sketch.AgentGrid()), "B/aggregate")
					b.ReportMetric(bytesPer(sketch.CommonGrid()), "B-common/aggregate")
					before := liveBytes()
					sketches := make([][2]*ddsketch.DDSketch, aggregates)
					fill(name, spans, aggregates, func(i int, ns uint64, flags span.Flags) {
						s := &sketches[i][flags&span.Error]
						if *s == nil {
							*s = newLibrarySketch()
						}
						if err := (*s).Add(truncate(ns)); err != nil {
							b.Fatal(err)
						}
					})
					b.ReportMetric(float64(liveBytes()-before)/aggregates, "B-library/aggregate")
					runtime.KeepAlive(sketches)
				}
			})
		}
	}
}

func fill(shape string, spans, aggregates int, add func(i int, ns uint64, flags span.Flags)) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for n := range spans * aggregates {
		flags := span.Flags(0)
		if rnd.IntN(20) == 0 {
			flags = span.Error
		}
		add(n%aggregates, shapes[shape](rnd), flags)
	}
}

func liveBytes() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}
