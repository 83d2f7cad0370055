package aggregate

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// TestClear clears again and again while publishers publish: each snapshot is in
// a sealed table or was dropped by a clear, and never both.
func TestClear(t *testing.T) {
	var sealed, cleared, hits atomic.Uint64
	config := testConfig(func(s *Sealed) {
		sealed.Add(s.Spans())
		cleared.Add(s.Cleared)
		for _, table := range s.tables {
			for i := range table.Len() {
				hits.Add(uint64(countsOf(table, i).Hits))
			}
		}
		s.Delivery.Resolve(nil)
		s.Release()
	})
	config.Drainers = 2
	a, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	a.Start()
	const publishers, each = 4, 3000
	var publishing sync.WaitGroup
	for p := range publishers {
		publishing.Go(func() {
			r := a.NewGuard()
			defer r.Close()
			for i := range each {
				publish(a, r, span.Origin{Service: "shop"}, span.Key{Resource: fmt.Sprint(p, i%50)},
					Slot{Duration: 5, End: time.Now().UnixNano(), Weight: 1})
			}
		})
	}
	done := make(chan struct{})
	go func() { publishing.Wait(); close(done) }()
	clears := 0
	for over := false; !over; clears++ {
		a.Clear()
		select {
		case <-done:
			over = true
		case <-time.After(time.Millisecond):
		}
	}
	a.Clear()
	a.Stop()
	a.Clear() // returns immediately after Stop
	if got := sealed.Load() + cleared.Load(); got != publishers*each || hits.Load() != sealed.Load() {
		t.Errorf("%d sealed with %v hits and %d cleared in %d clears, of %d", sealed.Load(), hits.Load(),
			cleared.Load(), clears, publishers*each)
	}
	if cleared.Load() == 0 {
		t.Error("no clear gave up anything")
	}
	if stats := a.Stats(); stats.Pending != 0 || stats.Aggregated() != publishers*each {
		t.Errorf("held %d, aggregated %d", stats.Pending, stats.Aggregated())
	}
}
