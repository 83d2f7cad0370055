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

// TestTableBytes fills a table with every key in every bucket, failed too, and
// holds what it took against what the configuration promises.
func TestTableBytes(t *testing.T) {
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
	if taken, want := table.bytes(), config.TableBytes()/2; taken != want {
		t.Errorf("a full table takes %d bytes, want %d", taken, want)
	}
}

// bytes is all that a table has set aside, but its pages.
func (t *Table) bytes() int {
	return cap(t.rows)*int(unsafe.Sizeof(row{})) + cap(t.errors)*int(unsafe.Sizeof(errorPart{})) + cap(t.index)*4
}

// TestMemoryOfAThousandAggregates counts durations of two shapes in a thousand
// aggregates, one in twenty failed, and holds what the table takes, rows and index
// included, against what the heap grows by when the library's sketches count the
// same, without any counters, and with an error sketch only where there was an
// error. (The agent's code makes two an aggregate in any case.) `make bench-sketch`
// prints the figures.
func TestMemoryOfAThousandAggregates(t *testing.T) {
	const aggregates = 1000
	for _, name := range []string{"web", "spread"} {
		for _, spans := range []int{1, 20, 200} {
			taken := func(grid *sketch.Grid) int {
				memory := sketch.NewMemory(64<<20, grid)
				table := NewTable(aggregates, 10*time.Second, memory)
				table.Begin(time.Unix(1000, 0))
				fill(name, spans, aggregates, func(i int, ns uint64, flags span.Flags) {
					put(table, 1002e9, Slot{Key: registry.KeyID(i), End: 1001e9, Duration: ns, Flags: flags})
				})
				return table.bytes() + memory.Taken()
			}
			ours, common := taken(sketch.AgentGrid()), taken(sketch.CommonGrid())
			if common > 2*ours {
				t.Errorf("%d bytes of %s take %d in the common grid", ours, name, common)
			}

			before := liveBytes()
			sketches := make([][2]*ddsketch.DDSketch, aggregates)
			fill(name, spans, aggregates, func(i int, ns uint64, flags span.Flags) {
				s := &sketches[i][flags&span.Error]
				if *s == nil {
					*s = newLibrarySketch()
				}
				if err := (*s).Add(truncate(ns)); err != nil {
					t.Fatal(err)
				}
			})
			library := liveBytes() - before
			runtime.KeepAlive(sketches)

			figures := fmt.Sprintf("%-6s %3d spans: %5d bytes an aggregate (%5d in the common grid), the "+
				"library's sketches %5d, ratio %.2f",
				name, spans, ours/aggregates, common/aggregates, library/aggregates,
				float64(ours)/float64(library))
			t.Log(figures)
			if 2*ours > library {
				t.Error("more than half: " + figures)
			}
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
