package ingest

import (
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
)

// TestLeewayComesBackSlowly holds what is left against how long was waited.
func TestLeewayComesBackSlowly(t *testing.T) {
	const most = 20 * time.Millisecond
	now := time.Unix(1000, 0)
	var l leeway
	wait := func(d time.Duration) (waited time.Duration) {
		for waited < d && l.has(now, most) {
			now = now.Add(time.Millisecond)
			waited += time.Millisecond
			l.spend(now)
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
	if l.has(now, 0) {
		t.Error("there is some where there may be none")
	}
}

// TestDrainersThatAreAwayCostNothing: batches that find no room while drainers are away
// are counted when they are back, within the leeway.
func TestDrainersThatAreAwayCostNothing(t *testing.T) {
	h := newHarness(t, func(c *Config, a *aggregate.Config) { c.Leeway, a.RingSlots = time.Hour, 256 })
	h.Start()
	t.Cleanup(h.stop)
	c := h.connect("shop")
	for range 10 {
		c.send(spans(200, key("r")))
	}
	time.Sleep(20 * time.Millisecond) // so that some find no room
	h.aggregator.Start()
	c.settle()
	h.stop()
	if stats := h.Stats(); stats.DroppedTotal() != 0 || h.rows["r"] != 2000 {
		t.Errorf("dropped %v, counted %v", stats.Dropped, h.rows)
	}
}

// TestWithoutLeeway a batch that finds no room is lost at once.
func TestWithoutLeeway(t *testing.T) {
	h := newHarness(t, func(c *Config, a *aggregate.Config) { c.Leeway, a.RingSlots = 0, 256 })
	h.Start()
	t.Cleanup(h.stop)
	c := h.connect("shop")
	for range 10 {
		c.send(spans(200, key("r")))
	}
	c.settle()
	h.aggregator.Start()
	h.stop()
	if stats := h.Stats(); stats.Dropped["ring_full"] != 9*200 || h.rows["r"] != 200 {
		t.Errorf("dropped %v, counted %v", stats.Dropped, h.rows)
	}
}
