package admit

import (
	"sync"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span"
)

// TestSettled_WhilePublishing reads Settled while batches are published and cycles end. All spans
// that it covers were dropped, or were in a delivered cycle.
func TestSettled_WhilePublishing(t *testing.T) {
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
			now := p.SettleBefore(through)
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
			if reported, err := h.aggregator.RequestFlush(t.Context()); err == nil {
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
	if through, _ := h.aggregator.Settled(); p.SettleBefore(through) != p.Received() {
		t.Errorf("%d of %d spans are settled in the end", p.SettleBefore(through), p.Received())
	}
}

// A dropped batch settles with the cycle that it would have been in.
func TestSettled_DroppedBatch(t *testing.T) {
	h := newHarness(t, nil)
	h.aggregator.Start()
	p := h.NewPublisher(span.Origin{Service: "shop"})
	if err := p.Publish(spans(3, []byte{0xc0})); err == nil || p.Received() != 3 {
		t.Errorf("%v, received %d of 3 spans of a key that can't be read", err, p.Received())
	}
	h.stop(p)
	if through, _ := h.aggregator.Settled(); p.SettleBefore(through) != 3 {
		t.Errorf("%d of 3 are settled", p.SettleBefore(through))
	}
}
