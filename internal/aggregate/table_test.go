package aggregate

import (
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

func TestClamp(t *testing.T) {
	const second = int64(time.Second)
	opened := time.Unix(1000, 0) // the cycle's main bucket is 1000 to 1010
	for _, test := range []struct {
		name     string
		end, now int64
		bucket   int64
		timing   timing
	}{
		{"main bucket", 1005 * second, 1006 * second, 1000, onTime},
		{"main bucket's start", 1000 * second, 1006 * second, 1000, onTime},
		{"main bucket's last", 1010*second - 1, 1010 * second, 1000, onTime},
		{"previous bucket", 995 * second, 1006 * second, 990, onTime},
		{"previous bucket's start", 990 * second, 1006 * second, 990, onTime},
		{"older", 990*second - 1, 1006 * second, 990, late},
		{"the epoch", 0, 1006 * second, 990, late},
		{"the lowest end", math.MinInt64, 1006 * second, 990, late},
		{"the highest end", math.MaxInt64, 1006 * second, 1000, early},
		{"ahead of now, same bucket", 1009 * second, 1006 * second, 1000, onTime},
		{"ahead of now, next bucket", 1011 * second, 1006 * second, 1000, early},
		{"next bucket, seal is late", 1011 * second, 1012 * second, 1010, onTime},
		{"beyond the window, seal is very late", 1025 * second, 1026 * second, 1010, onTime},
		{"clock stepped back", 1011 * second, 500 * second, 1000, early},
	} {
		table := newTestTable(4)
		table.Begin(opened)
		timing := put(table, test.now, Slot{Key: 3, End: test.end})
		if bucket := table.Part(0).Bucket; bucket != test.bucket*second || timing != test.timing {
			t.Errorf("%s: bucket %d, timing %d; want %d, %d", test.name, bucket/second, timing, test.bucket,
				test.timing)
		}
	}
}

// put counts a snapshot as if it had been published at now, and returns its timing. A weight of 0 stands for 1.
func put(table *Table, now int64, s Slot) timing {
	if s.Weight == 0 {
		s.Weight = 1
	}
	window := NewWindow(0, time.Unix(0, table.oldest+table.width), time.Duration(table.width))
	window.now = now
	s.Place = window.Place(s.End)
	table.Add(&s)
	return s.timing
}

func newTestTable(keys int) *Table {
	return NewTable(keys, 10*time.Second, sketch.NewMemory(1<<20, sketch.AgentGrid()))
}

// fillTable counts some ok and failed spans of each of a hundred keys, of some so
// many that their sketches need pages.
func fillTable(table *Table, now time.Time) {
	table.Begin(now)
	window := NewWindow(0, now, 10*time.Second)
	for i := range 100 {
		for n := range 1 + i {
			for _, flags := range []span.Flags{0, span.Error} {
				end := now.UnixNano()
				table.Add(&Slot{
					Key: registry.KeyID(i), Duration: uint64(i*n) * 1000, End: end, Weight: 1,
					Flags: flags, Place: window.Place(end),
				})
			}
		}
	}
}

// TestTable_Reuse fills and resets: no row may remember another.
func TestTable_Reuse(t *testing.T) {
	table := newTestTable(100)
	now := time.Unix(1000, 0)
	fillTable(table, now)
	table.Reset()
	table.Begin(now)
	for i := range 100 {
		put(table, now.UnixNano(), Slot{
			Key: registry.KeyID(99 - i), End: now.UnixNano(), Duration: 7,
			Flags: span.Error,
		})
		row := table.Part(i)
		if row.Key != registry.KeyID(99-i) ||
			row.Counts() != (Counts{Spans: 1, Hits: 1, Errors: 1, Duration: 7}) {
			t.Fatalf("a reused row counts %+v", row.Counts())
		}
		if row.ErrorDuration() != 7 {
			t.Fatalf("errors of a reused row took %v", row.ErrorDuration())
		}
		var ok, failed sketch.Sketch
		row.ReadOK(&ok)
		row.ReadErrors(&failed)
		want := newLibrarySketch()
		if err := want.Add(truncate(7)); err != nil {
			t.Fatal(err)
		}
		if contentOf(&ok).spans() != 0 || !reflect.DeepEqual(contentOf(&failed), libraryContent(want)) {
			t.Fatalf("a reused row has the sketches %v and %v", contentOf(&ok), contentOf(&failed))
		}
	}
}

// TestCounters_DoNotWrap adds what would overflow integers many times over: sums
// become inexact, as any float64, and never small.
func TestCounters_DoNotWrap(t *testing.T) {
	table := newTestTable(1)
	table.Begin(time.Unix(1000, 0))
	for range 10 {
		put(table, 1001e9, Slot{
			End: 1000e9, Duration: math.MaxUint64, Flags: span.TopLevel | span.Error,
			Weight: 1 << 32,
		})
	}
	row := countsOf(table, 0)
	if row.Duration != 10*(1<<32)*math.MaxUint64 || row.Hits != 10<<32 || row.TopLevel != 10<<32 ||
		row.Errors != 10<<32 || row.Spans != 10 {
		t.Errorf("counted %+v", row)
	}
	row.Add(&Counts{Spans: 1, Hits: math.MaxFloat64, Duration: math.MaxFloat64})
	row.Add(&Counts{Spans: 1, Hits: math.MaxFloat64, Duration: math.MaxFloat64})
	if !math.IsInf(row.Hits, 1) || !math.IsInf(row.Duration, 1) || row.Spans != 12 {
		t.Errorf("counted %+v", row)
	}
}

func countsOf(table *Table, at int) Counts {
	part := table.Part(at)
	return part.Counts()
}
