package exemplars_test

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/aggregate/exemplars"
)

// series is a key and an outcome in a cycle.
type series struct {
	cycle   uint64
	key     uint32
	isError bool
}

func spanOf(s series, id, duration uint64) exemplars.Span {
	return exemplars.Span{
		Exemplar: exemplars.Exemplar{TraceHigh: 1, TraceLow: 2, Span: id, Duration: duration, End: 3},
		Cycle:    s.cycle, Key: s.key, IsError: s.isError,
	}
}

func offer(t *exemplars.Table, spans ...exemplars.Span) { t.Offer(slices.Values(spans)) }

// TestOffer_SlowestSpanIsExemplar compares random spans with a map of the slowest of each series.
func TestOffer_SlowestSpanIsExemplar(t *testing.T) {
	for seed := range uint64(100) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		table, slowest, id := exemplars.New(1<<12), map[series]exemplars.Exemplar{}, uint64(0)
		apart := 12 * (seed % 2) // so that all keys share one list
		for cycle := range uint64(12) {
			for range rnd.IntN(60) {
				var spans []exemplars.Span
				for range rnd.IntN(20) {
					s := series{cycle, uint32(rnd.IntN(1+rnd.IntN(40))) << apart, rnd.IntN(4) == 0}
					id++
					one := spanOf(s, id, rnd.Uint64N(100))
					if before, is := slowest[s]; !is || one.Duration > before.Duration {
						slowest[s] = one.Exemplar
					}
					spans = append(spans, one)
				}
				offer(table, spans...)
			}
			sealed := table.Seal(cycle)
			for key := range uint32(41) {
				for _, isError := range []bool{false, true} {
					s := series{cycle, key << apart, isError}
					if got := sealed.Find(s.key, isError); got != slowest[s] {
						t.Fatalf("seed %d: %+v has %+v, want %+v", seed, s, got, slowest[s])
					}
				}
			}
		}
	}
}

func TestOffer_FullTable(t *testing.T) {
	table := exemplars.New(3)
	before := table.Bytes()
	for cycle := range uint64(4) {
		for key := range uint32(5) {
			offer(table, spanOf(series{cycle, key, false}, 1, 10))
		}
		sealed := table.Seal(cycle)
		for key := range uint32(5) {
			if got := sealed.Find(key, false); (got.Span != 0) != (key < 3) {
				t.Errorf("key %d has %+v", key, got)
			}
		}
	}
	if got := table.Counts(); got != (exemplars.Counts{Taken: 12, NoRoom: 8}) {
		t.Errorf("%+v", got)
	}
	if after := table.Bytes(); after != before || before == 0 {
		t.Errorf("%d bytes, %d after more spans than fit", before, after)
	}
}

func TestSeal_CycleWithoutSpans(t *testing.T) {
	table := exemplars.New(8)
	offer(table, spanOf(series{4, 1, false}, 1, 50))
	offer(table, spanOf(series{6, 2, false}, 1, 5)) // in the memory of cycle 4
	for _, c := range []struct {
		cycle uint64
		key   uint32
		want  uint64
	}{{6, 2, 5}, {6, 1, 0}, {5, 1, 0}, {4, 1, 0}} {
		if got := table.Seal(c.cycle).Find(c.key, false); got.Duration != c.want {
			t.Errorf("key %d of cycle %d has %+v", c.key, c.cycle, got)
		}
	}
}

func TestTable_Nil(t *testing.T) {
	table := exemplars.New(0)
	if table != nil || table.Bytes() != 0 || table.Seal(1).Find(1, false).Span != 0 ||
		table.Counts() != (exemplars.Counts{}) {
		t.Error("a limit of 0 makes a table")
	}
}

// TestOffer_WhileSealing uses a table as the daemon does: publishers hold a read lock while they are
// within a cycle, as package aggregate's guards do. Under -race it shows that a sealed cycle can be
// read without the table's lock.
func TestOffer_WhileSealing(t *testing.T) {
	const publishers, keys, cycles = 4, 16, 300
	var guard sync.RWMutex
	var open uint64
	table := exemplars.New(24)
	var running sync.WaitGroup
	stop := make(chan struct{})
	labeled := func(key uint32, isError bool) uint64 {
		if isError {
			return uint64(key) | 1<<32
		}
		return uint64(key)
	}
	for publisher := range uint64(publishers) {
		running.Go(func() {
			rnd := rand.New(rand.NewPCG(publisher, 9))
			for {
				select {
				case <-stop:
					return
				default:
				}
				guard.RLock()
				for range 8 {
					s := series{open, uint32(rnd.IntN(keys)), rnd.IntN(2) == 0}
					one := spanOf(s, 1, rnd.Uint64N(1000))
					one.TraceHigh, one.TraceLow, one.End = open, labeled(s.key, s.isError), int64(one.Duration)
					offer(table, one)
				}
				guard.RUnlock()
			}
		})
	}
	found := 0
	for done := 0; done < cycles || found < cycles; done++ {
		guard.Lock()
		number := open
		open++
		guard.Unlock()
		sealed := table.Seal(number)
		for key := range uint32(keys) {
			for _, isError := range []bool{false, true} {
				e := sealed.Find(key, isError)
				if e.Span == 0 {
					continue
				}
				found++
				if e.TraceHigh != number || e.TraceLow != labeled(key, isError) ||
					e.Duration != uint64(e.End) {
					t.Errorf("key %d of cycle %d has %+v", key, number, e)
				}
			}
		}
		runtime.Gosched()
	}
	close(stop)
	running.Wait()
}
