package admit

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// TestSettledIsNeverMoreThanHasHadItsOutcome gives spans to a publisher in cycles that it
// joins, or does not, and lets outcomes come late: what is settled never exceeds what lies
// in cycles with an outcome, never falls, and is all of it in the end.
func TestSettledIsNeverMoreThanHasHadItsOutcome(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 1))
	for range 300 {
		var s settling
		var byCycle []uint64 // what was given in each
		given, through, settled := uint64(0), uint64(0), uint64(0)
		for range 100 {
			cycle := uint64(len(byCycle))
			byCycle = append(byCycle, 0)
			for range rnd.IntN(3) {
				if s.cycle != cycle+1 {
					s.join(cycle, given)
				}
				spans := rnd.Uint64N(100)
				byCycle[cycle] += spans
				given += spans
			}
			if rnd.IntN(20) > 0 && through < cycle {
				through += rnd.Uint64N(cycle - through + 1)
			}
			most := uint64(0)
			for _, spans := range byCycle[:through] {
				most += spans
			}
			now := s.through(through, given)
			if now > most || now < settled {
				t.Fatalf("%d of %d spans are settled, after %d, where %d have had their outcome", now, given, settled, most)
			}
			if cycle-through < marks && now != most {
				t.Fatalf("%d spans are settled, where %d have had their outcome in all but %d cycles", now, most, cycle-through)
			}
			settled = now
		}
		if all := s.through(uint64(len(byCycle)), given); all != given {
			t.Fatalf("%d of %d spans are settled in the end", all, given)
		}
	}
}

// TestSettledWhilePublishing asks while batches are published and cycles end: whatever is
// said to be settled was dropped, or in a cycle that was delivered.
func TestSettledWhilePublishing(t *testing.T) {
	h := newHarness(t, nil)
	h.aggregator.Start()
	p := h.NewPublisher(span.Origin{Service: "shop"})
	stop := make(chan struct{})
	var asking sync.WaitGroup
	asking.Go(func() {
		for before := uint64(0); ; {
			select {
			case <-stop:
				return
			default:
			}
			through, _ := h.aggregator.Settled()
			now := p.Settled(through)
			h.mu.Lock()
			delivered := h.sealed + p.Dropped()
			h.mu.Unlock()
			if now < before || now > delivered {
				t.Errorf("%d spans are settled after %d, and %d were delivered", now, before, delivered)
				return
			}
			before = now
		}
	})
	reporting := make(chan struct{})
	go func() {
		defer close(reporting)
		for range 2 {
			if reported, err := h.aggregator.Report(t.Context()); err == nil {
				_ = reported.Wait(t.Context())
			}
		}
	}()
	for isOver := false; !isOver; {
		if err := p.Publish(spans(8, key("r"))); err != nil {
			t.Error(err)
		}
		select {
		case <-reporting:
			isOver = true
		default:
		}
	}
	close(stop)
	asking.Wait()
	h.stop(p)
	if through, _ := h.aggregator.Settled(); p.Settled(through) != p.Received() {
		t.Errorf("%d of %d spans are settled in the end", p.Settled(through), p.Received())
	}
}
