package otlp

import (
	"slices"
	"sync"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/eventually"
)

// TestSendersTakeTurns: one that sends much waits for itself.
func TestSendersTakeTurns(t *testing.T) {
	var workers turns
	only := &worker{}
	workers.give(only)
	if workers.take("first") != only {
		t.Fatal("a worker that is free is not given")
	}
	waiting := func() (n int) {
		workers.mu.Lock()
		defer workers.mu.Unlock()
		for _, q := range workers.waiting {
			n += len(q.requests)
		}
		return n
	}
	var order []string // guarded by the only worker
	var all sync.WaitGroup
	for i, sender := range []string{"hog", "hog", "hog", "hog", "polite", "another", "polite"} {
		all.Go(func() {
			w := workers.take(sender)
			order = append(order, sender)
			workers.give(w)
		})
		eventually.True(t, "it waits", func() bool { return waiting() == i+1 })
	}
	workers.give(only)
	all.Wait()
	want := []string{"hog", "polite", "another", "hog", "polite", "hog", "hog"}
	if !slices.Equal(order, want) {
		t.Errorf("the order is %v, want %v", order, want)
	}
	if workers.take("last") != only || len(workers.waiting) != 0 {
		t.Error("the worker is not free again")
	}
}
