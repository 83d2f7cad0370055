package admit

import (
	"fmt"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// TestTheWaitBudgetComesBackSlowly holds what is left against how long was waited.
func TestTheWaitBudgetComesBackSlowly(t *testing.T) {
	const most = 20 * time.Millisecond
	now := time.Unix(1000, 0)
	var w waitBudget
	wait := func(d time.Duration) (waited time.Duration) {
		for waited < d && w.has(now, most) {
			now = now.Add(time.Millisecond)
			waited += time.Millisecond
			w.spend(now)
		}
		return waited
	}
	for _, step := range []struct{ rest, want time.Duration }{
		{0, most}, // a connection has all of it at first
		{0, 0},
		{9 * time.Millisecond, time.Millisecond}, // begun is waited to the end
		{time.Millisecond, 0},
		{50 * time.Millisecond, 5 * time.Millisecond},
		{time.Hour, most},
	} {
		now = now.Add(step.rest)
		if got := wait(time.Second); got != step.want {
			t.Errorf("%s after the last wait it waits for %s, want %s", step.rest, got, step.want)
		}
	}
	if w.has(now, 0) {
		t.Error("there is some where there may be none")
	}
}

// TestDrainersThatAreAwayCostNothing: batches that find no room while drainers are away
// are counted when they are back, within the budget.
func TestDrainersThatAreAwayCostNothing(t *testing.T) {
	h := newHarness(t, func(c *Config, a *aggregate.Config) { c.WaitBudget, a.RingSlots = time.Hour, 256 })
	p := h.NewConnection(span.Origin{Service: "shop"}, 0)
	published := make(chan struct{})
	go func() {
		defer close(published)
		for range 10 {
			if err := p.Publish(spans(200, key("r"))); err != nil {
				t.Error(err)
			}
		}
	}()
	time.Sleep(20 * time.Millisecond) // so that some find no room
	h.aggregator.Start()
	<-published
	h.stop(p)
	if stats := h.Stats(); stats.DroppedTotal() != 0 || h.rows["r"] != 2000 {
		t.Errorf("dropped %v, counted %v", stats.Dropped, h.rows)
	}
}

// TestWithoutAWaitBudget a batch that finds no room is lost at once.
func TestWithoutAWaitBudget(t *testing.T) {
	h := newHarness(t, func(c *Config, a *aggregate.Config) { c.WaitBudget, a.RingSlots = 0, 256 })
	p := h.NewConnection(span.Origin{Service: "shop"}, 0)
	for range 10 {
		if err := p.Publish(spans(200, key("r"))); err != nil {
			t.Error(err)
		}
	}
	h.finish(p)
	if stats := h.Stats(); stats.Dropped["ring_full"] != 9*200 || h.rows["r"] != 200 {
		t.Errorf("dropped %v, counted %v", stats.Dropped, h.rows)
	}
}

// TestABatchIsCountedOnceHoweverOftenItIsTried: its keys too.
func TestABatchIsCountedOnceHoweverOftenItIsTried(t *testing.T) {
	h := newHarness(t, func(c *Config, a *aggregate.Config) {
		c.WaitBudget, a.RingSlots, a.Budgets[span.LabelResource] = 5*roomPause, 1024, 1
	})
	p := h.NewConnection(span.Origin{Service: "shop"}, 0)
	unique := func(name string, n int) []byte {
		return bodyOf(n, func(i int, frame []byte) []byte {
			return wire.AppendWhole(frame, key(fmt.Sprint(name, i)), 1000, time.Now().UnixNano(), 0, 1)
		})
	}
	// The registry mistakes one key in some thousand for one that came before. Keys that
	// were taken for that because their batch was tried again would be two hundred.
	const mistaken = 5
	decoded, dropped := uint64(0), uint64(0)
	for _, batch := range []struct {
		name        string
		n, rejected int
	}{{"fills", 800, 0}, {"no room", 200, 200}, {"none", 200, 200}, {"a little", 5, 0}} {
		known := len(p.finder.keys.known)
		if err := p.Publish(unique(batch.name, batch.n)); err != nil {
			t.Fatal(err)
		}
		decoded, dropped = decoded+uint64(batch.n), dropped+uint64(batch.rejected)
		if stats := h.Stats(); stats.KeysDecoded != decoded || stats.Dropped["ring_full"] != dropped ||
			len(p.finder.keys.known) > known+1+mistaken {
			t.Errorf("%s: %d keys are known, %d were before; %d were decoded, want %d; dropped %v, want %d",
				batch.name, len(p.finder.keys.known), known, stats.KeysDecoded, decoded, stats.Dropped, dropped)
		}
	}
	if p.Received() != 1205 || p.Dropped() != 400 {
		t.Errorf("the publisher says %d received and %d dropped", p.Received(), p.Dropped())
	}
	h.finish(p)
}
