package aggregate

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// TestMergedStore: adding many spans of a bin at once is adding them one by one,
// whatever form the store is in, and where there is no memory none is lost.
func TestMergedStore(t *testing.T) {
	for _, pages := range []int{0, 1, 200} { // chunks, of 512 pages
		for seed := range uint64(30) {
			rnd := rand.New(rand.NewPCG(seed, 1))
			var at, want Sketch
			a := arena{memory: &SketchMemory{limit: pages}}
			var s store
			total, zeros := uint64(0), uint64(0)
			for range 1 + rnd.IntN(20) {
				b := Bins{Zeros: rnd.Uint64N(3)}
				zeros += b.Zeros
				for range rnd.IntN(60) {
					bin := Bin{uint16(rnd.IntN(allBins)), rnd.Uint64N(1 << (1 + rnd.IntN(40)))}
					b.List = append(b.List, bin)
					want.count(uint(bin.Index), bin.Spans)
					total += bin.Spans
				}
				s.merge(&a, &b)
			}
			s.read(&a, &at)
			sum := uint64(0)
			for i, n := range at.counts {
				sum += n
				if pages == 200 && n != want.counts[i] {
					t.Fatalf("seed %d, bin %d: %d spans, want %d", seed, i, n, want.counts[i])
				}
			}
			if sum != total || at.zeros != zeros {
				t.Errorf("seed %d, %d chunks: %d spans and %d zeros, want %d and %d", seed, pages, sum, at.zeros, total, zeros)
			}
		}
	}
}

// TestWindowOfGroups: a bucket is there from a minute before the cycle's own to the
// one after it, if it is one of ours.
func TestWindowOfGroups(t *testing.T) {
	config := testConfig(func(s *Sealed) { s.Delivery.Resolve(nil); s.Release() })
	config.Merge = true
	c := &Cycle{merged: merged{table: newMergedTable(&config, NewSketchMemory(1<<20))}}
	c.merged.table.Open(time.Unix(1003, 0))
	for second, want := range map[int64]bool{
		930: false, 940: true, 980: true, 985: false, 1000: true, 1010: true, 1020: false, -1000: false,
	} {
		if got := c.CanMerge(second*1e9, 10e9); got != want {
			t.Errorf("bucket %d: %v", second, got)
		}
		if c.CanMerge(second*1e9, 5e9) {
			t.Errorf("bucket %d is of another width", second)
		}
	}
	if (&Cycle{}).CanMerge(1000e9, 10e9) {
		t.Error("a cycle that merges nothing has a bucket")
	}
}

// TestMerge merges from many sides while drainers count the same keys, and cycles
// are sealed and cleared: each span is in one sealed cycle or given up, its key has
// all of its counts, and the books say so.
func TestMerge(t *testing.T) {
	var sealed, cleared, hits, binned atomic.Uint64
	config := testConfig(func(s *Sealed) {
		sealed.Add(s.Spans())
		cleared.Add(s.Cleared)
		for _, table := range s.Tables {
			for i := range table.Rows() {
				var sketch Sketch
				row := &table.Rows()[i]
				table.OK(row, &sketch)
				table.Errors(row, &sketch)
				for _, n := range sketch.counts {
					binned.Add(n)
				}
				binned.Add(sketch.zeros)
				hits.Add(uint64(row.Hits))
			}
		}
		s.Delivery.Resolve(nil)
		s.Release()
	})
	config.Drainers, config.Merge = 2, true
	a, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	a.Start()
	var sent atomic.Uint64
	var sending sync.WaitGroup
	for p := range 4 {
		sending.Go(func() {
			r := a.NewReader()
			defer r.Close()
			for i := range 1000 {
				key := span.Key{Resource: fmt.Sprint(i % 50)}
				if p == 0 {
					publish(a, r, span.Origin{Service: "shop"}, key, Slot{Duration: 5, End: time.Now().UnixNano(), Weight: 1})
					sent.Add(1)
					continue
				}
				cycle := r.Enter()
				origin, _ := cycle.AdmitOrigin(span.Origin{Service: "shop"})
				now := time.Now().UnixNano()
				g := Group{Key: key, Bucket: now - now%10e9, Counts: Counts{Spans: 7, Hits: 7}}
				g.OK, g.Errors = Bins{Zeros: 1, List: []Bin{{100, 4}}}, Bins{List: []Bin{{200, 2}}}
				if !cycle.CanMerge(g.Bucket, 10e9) {
					t.Error("there is no bucket of now")
				}
				cycle.Merge(origin, &g)
				r.Exit()
				sent.Add(7)
			}
		})
	}
	done := make(chan struct{})
	go func() { sending.Wait(); close(done) }()
	for over := false; !over; {
		a.Clear()
		select {
		case <-done:
			over = true
		case <-time.After(time.Millisecond):
		}
	}
	a.Stop()
	if got := sealed.Load() + cleared.Load(); got != sent.Load() || hits.Load() != sealed.Load() || binned.Load() != sealed.Load() {
		t.Errorf("%d spans of %d: %d sealed with %d hits and %d in bins, %d cleared", got, sent.Load(), sealed.Load(), hits.Load(), binned.Load(), cleared.Load())
	}
	if s := a.Stats(); s.Aggregated() != sent.Load() || s.Held != 0 {
		t.Errorf("%d of %d spans aggregated, %d held", s.Aggregated(), sent.Load(), s.Held)
	}
}
