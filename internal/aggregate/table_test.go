package aggregate

import (
	"math"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

func TestClamp(t *testing.T) {
	const second = int64(time.Second)
	opened := time.Unix(1000, 0) // the cycle's own bucket is 1000 to 1010
	for _, test := range []struct {
		name     string
		end, now int64
		bucket   int64
		clamp    Clamp
	}{
		{"own bucket", 1005 * second, 1006 * second, 1000, InTime},
		{"own bucket's start", 1000 * second, 1006 * second, 1000, InTime},
		{"own bucket's last", 1010*second - 1, 1010 * second, 1000, InTime},
		{"previous bucket", 995 * second, 1006 * second, 990, InTime},
		{"previous bucket's start", 990 * second, 1006 * second, 990, InTime},
		{"older", 990*second - 1, 1006 * second, 990, Late},
		{"the epoch", 0, 1006 * second, 990, Late},
		{"the lowest end", math.MinInt64, 1006 * second, 990, Late},
		{"the highest end", math.MaxInt64, 1006 * second, 1000, Early},
		{"ahead of now, same bucket", 1009 * second, 1006 * second, 1000, InTime},
		{"ahead of now, next bucket", 1011 * second, 1006 * second, 1000, Early},
		{"next bucket, seal is late", 1011 * second, 1012 * second, 1010, InTime},
		{"beyond the window, seal is very late", 1025 * second, 1026 * second, 1010, InTime},
		{"clock stepped back", 1011 * second, 500 * second, 1000, Early},
	} {
		table := NewTable(4, 10*time.Second)
		table.Open(opened)
		row, clamp := table.Row(3, test.end, test.now)
		if row.Bucket != test.bucket*second || clamp != test.clamp {
			t.Errorf("%s: bucket %d, clamp %d; want %d, %d", test.name, row.Bucket/second, clamp, test.bucket, test.clamp)
		}
	}
}

// fillTable counts an ok and a failed span of each of a hundred keys.
func fillTable(table *Table, now time.Time) {
	table.Open(now)
	for i := range 100 {
		for _, flags := range []span.Flags{0, span.Error} {
			row, _ := table.Row(KeyID(i), now.UnixNano(), now.UnixNano())
			row.Add(uint64(i)*1000, flags, 1)
		}
	}
}

// TestTableReuse fills and resets: no row may remember another.
func TestTableReuse(t *testing.T) {
	table := NewTable(100, 10*time.Second)
	now := time.Unix(1000, 0)
	fillTable(table, now)
	table.Reset()
	for i := range 100 {
		row, _ := table.Row(KeyID(99-i), now.UnixNano(), now.UnixNano())
		if row.Spans != 0 || row.Err != nil || row.OK.Count() != 0 || int(row.Key) != 99-i {
			t.Fatalf("a reused row holds %+v", row)
		}
		row.Add(7, span.Error, 1)
		if row.Err.Count() != 1 || row.OK.Count() != 0 || row.Errors != 1 || row.Hits != 1 {
			t.Fatalf("a reused row counts %+v", row)
		}
	}
}

// TestCountersDoNotWrap adds what would overflow integers many times over.
func TestCountersDoNotWrap(t *testing.T) {
	var a Aggregate
	a.OK = NewSketch()
	for range 10 {
		a.Add(math.MaxUint64, span.TopLevel, 1<<32)
	}
	if a.Duration < 10*math.MaxUint64 || a.Hits != 10<<32 || a.OK.Count() != 10 {
		t.Errorf("counted %v hits and %v ns in %v spans", a.Hits, a.Duration, a.OK.Count())
	}
}
