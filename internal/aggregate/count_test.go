package aggregate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate/sketch"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// TestCount_AgreesWithAdd has a drainer count random slots in runs of random length. The resulting tables, with their
// sketches, must be equal to tables to which the slots were added one by one, and the counters must be consistent.
func TestCount_AgreesWithAdd(t *testing.T) {
	for seed := range uint64(40) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		opened := time.Now()
		var d drainer
		var want [2]*Table
		var windows [2]Window
		for i := range want {
			d.tables[i], want[i] = newTestTable(50), newTestTable(50)
			d.tables[i].Begin(opened)
			want[i].Begin(opened)
			windows[i] = NewWindow(uint64(i), opened, 10*time.Second)
		}
		var slots []Slot
		var sent, lates, earlies uint64
		for range 20_000 {
			s := Slot{
				Key: registry.KeyID(rnd.IntN(1 + rnd.IntN(50))), Duration: rnd.Uint64() >> rnd.IntN(64),
				End: opened.UnixNano() - int64(rnd.IntN(5e9)), Weight: 1, Flags: span.Flags(rnd.IntN(4)),
			}
			switch rnd.IntN(30) {
			case 0:
				s.Weight = rnd.Float64() * 10
			case 1:
				s.End += int64(rnd.IntN(60e9)) - 30e9
			case 2:
				s.Duration = 0
			case 3:
				s.Duration = math.MaxUint64
			}
			window := &windows[min(rnd.IntN(100), 1)]
			s.Place = window.Place(s.End)
			slots = append(slots, s)
			sent++
			switch s.timing {
			case late:
				lates++
			case early:
				earlies++
			}
		}
		for i := range slots {
			want[slots[i].cycle].Add(&slots[i])
		}
		for rest := slots; len(rest) > 0; {
			n := min(1+rnd.IntN(700), len(rest))
			d.count(rest[:n])
			rest = rest[n:]
		}
		if d.aggregated.Load() != sent || d.late.Load() != lates || d.early.Load() != earlies {
			t.Errorf("seed %d: counted %d, late %d, early %d; want %d, %d, %d",
				seed, d.aggregated.Load(), d.late.Load(), d.early.Load(), sent, lates, earlies)
		}
		for i := range want {
			if problem := differ(d.tables[i], want[i]); problem != "" {
				t.Errorf("seed %d, table %d: %s", seed, i, problem)
			}
		}
	}
}

// differ returns the first difference between two tables, or "" if they are equal.
func differ(got, want *Table) string {
	if got.Len() != want.Len() {
		return fmt.Sprintf("%d rows, want %d", got.Len(), want.Len())
	}
	held := uint64(0)
	for at := range got.Len() {
		a, b := got.Part(at), want.Part(at)
		if a.Key != b.Key || a.Bucket != b.Bucket || a.Counts() != b.Counts() {
			return fmt.Sprintf("row %d is %+v and counts %+v, want %+v and %+v", at, a, a.Counts(), b,
				b.Counts())
		}
		held += a.Counts().Spans
		var sketches [4]sketch.Sketch
		a.ReadOK(&sketches[0])
		b.ReadOK(&sketches[1])
		a.ReadErrors(&sketches[2])
		b.ReadErrors(&sketches[3])
		for i := 0; i < 4; i += 2 {
			if x, y := contentOf(&sketches[i]), contentOf(&sketches[i+1]); !reflect.DeepEqual(x, y) {
				return fmt.Sprintf("row %d has the sketch %v, want %v", at, x, y)
			}
		}
	}
	if got.pending.Load() != held {
		return fmt.Sprintf("%d spans are held, and %d stand in the rows", got.pending.Load(), held)
	}
	return ""
}
