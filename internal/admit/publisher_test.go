package admit

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/ring"
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// TestFlood_LeavesRoom has several publishers fill a ring that is not drained. The largest batch of
// another publisher still fits.
func TestFlood_LeavesRoom(t *testing.T) {
	for floods := 1; floods <= 3; floods++ {
		t.Run(fmt.Sprint(floods, " floods"), func(t *testing.T) {
			h := newHarness(t, nil)
			modest := h.NewPublisher(span.Origin{Service: "modest"})
			var flooding []*Publisher
			for i := range floods {
				flooding = append(flooding, h.NewPublisher(span.Origin{Service: fmt.Sprint("flood", i)}))
			}
			accepted := 0
			for refused := 0; refused < floods; {
				refused = 0
				for _, p := range flooding {
					reason, ok := h.offer(p, body(100))
					switch {
					case ok:
						accepted += 100
					case reason == DropOverShare:
						refused++
					default:
						t.Fatalf("a flood was refused as %s", reason)
					}
				}
			}
			slots := h.config.Aggregator.RingSlots()
			if left := slots - accepted; left < slots/(1+usedPerFree*floods)-100 ||
				left > slots/(1+usedPerFree*floods)+100*floods {
				t.Errorf("%d floods left %d of %d slots", floods, left, slots)
			}
			if reason, ok := h.offer(modest, body(1024)); !ok {
				t.Errorf("a batch of another was refused as %s", reason)
			}
			h.finish(append(flooding, modest)...)
		})
	}
}

// TestFlood_PublishersInTurn has each publisher claim all that it may before the next one starts.
func TestFlood_PublishersInTurn(t *testing.T) {
	h := newHarness(t, nil)
	modest := h.NewPublisher(span.Origin{Service: "modest"})
	publishers, slots := []*Publisher{modest}, h.config.Aggregator.RingSlots()
	left := slots
	for i := range 3 {
		p := h.NewPublisher(span.Origin{Service: fmt.Sprint("flood", i)})
		publishers = append(publishers, p)
		for {
			if _, ok := h.offer(p, body(16)); !ok {
				break
			}
			left -= 16
		}
		if half := slots >> (i + 1); left < half || left > half+16 {
			t.Errorf("flood %d left %d of %d slots", i, left, slots)
		}
	}
	for range slots / 8 / 2 / 16 {
		if reason, ok := h.offer(modest, body(16)); !ok {
			t.Fatalf("a batch of another was refused as %s", reason)
		}
	}
	h.finish(publishers...)
}

// TestRingShare_SinglePublisherLeavesEighth lets a single publisher fill its ring. The next publisher's batch still
// fits.
func TestRingShare_SinglePublisherLeavesEighth(t *testing.T) {
	h := newHarness(t, nil)
	p := h.NewPublisher(span.Origin{Service: "only"})
	slots, accepted := h.config.Aggregator.RingSlots(), 0
	for ok := true; ok; {
		var reason DropReason
		if reason, ok = h.offer(p, body(1)); ok {
			accepted++
		} else if reason != DropRingFull {
			t.Errorf("one more was refused as %s", reason)
		}
	}
	if free := h.config.Aggregator.Ring(0).Free(); free != slots/8 || accepted != slots/8*7 {
		t.Errorf("%d spans were accepted and %d slots free of %d", accepted, free, slots)
	}
	next := h.NewPublisher(span.Origin{Service: "next"})
	if reason, ok := h.offer(next, body(1024)); !ok {
		t.Errorf("the next one was refused as %s", reason)
	}
	h.finish(p, next)
	if got := h.Stats().Dropped["left_to_agent"]; got != 1 { // the refused one
		t.Errorf("%d spans were left to the agent", got)
	}
}

// TestRingShare_AgainstList compares the held slots of a share with a list of all runs, for random
// sequences of publishing and draining.
func TestRingShare_AgainstList(t *testing.T) {
	const slots = 256
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		r, err := ring.New[aggregate.Slot](slots)
		if err != nil {
			t.Fatal(err)
		}
		var s ringShare
		var runs []claimedRange
		drained := make(chan struct{})
		permits := make(chan struct{}, 4096)
		go func() {
			defer close(drained)
			r.Consume(1, func([]aggregate.Slot) { <-permits }, func(ring.Signal) {})
		}()
		for range 3000 {
			n := 1 + random.IntN(slots/8)
			switch random.IntN(3) {
			case 0:
				select {
				case permits <- struct{}{}:
				default:
				}
			case 1: // another's
				if claim, result := r.Claim(n); result == ring.Claimed {
					claim.Publish()
				}
			case 2:
				before := r.Drained()
				s.removeDrained(r.Drained())
				after := r.Drained()
				most, least := 0, 0
				for _, run := range runs {
					if run.end > before {
						most += run.slots
					}
					if run.end > after {
						least += run.slots
					}
				}
				if s.usedSlots < least || s.usedSlots > most+slots/rangePart+slots/8 {
					t.Fatalf("seed %d: %d slots are held, by the list %d to %d", seed, s.usedSlots, least, most)
				}
				if claim, result := r.Claim(n); result == ring.Claimed {
					runs = append(runs, claimedRange{claim.End(), n})
					s.addRange(claim.End(), n, slots)
					claim.Publish()
				}
			}
		}
		close(permits)
		r.Send(ring.Signal{Kind: ring.Stop})
		<-drained
	}
}

// TestBatch_TogetherAllOrNone: if the batch of the second publisher does not fit, the batch of the first
// is not admitted either.
func TestBatch_TogetherAllOrNone(t *testing.T) {
	h := newHarness(t, nil)
	a, b := h.NewPublisher(span.Origin{Service: "a"}), h.NewPublisher(span.Origin{Service: "b"})
	slots := h.config.Aggregator.RingSlots()
	if reason, ok := h.offer(a, body(10)); !ok {
		t.Errorf("a small batch was refused as %s", reason)
	}
	committed := 0
	if reason, ok := h.PublishTogether(never(t), BatchPart{a, batchOf(100)}, BatchPart{b, batchOf(slots - 100)}); ok ||
		reason != DropRingFull {
		t.Errorf("more than a ring has room for was answered with %s", reason)
	}
	if reason, ok := h.PublishTogether(func() {
		committed++
	}, BatchPart{a, batchOf(100)}, BatchPart{b, batchOf(50)}); !ok || committed != 1 {
		t.Errorf("two small batches were refused as %s", reason)
	}
	if _, ok := h.PublishTogether(func() { committed++ }); !ok || committed != 2 {
		t.Error("nothing was refused")
	}
	h.finish(a, b)
	in, counted := h.Stats(), h.aggregator.Stats()
	if left := in.Dropped["left_to_agent"]; left != uint64(slots) || counted.Aggregated() != 160 {
		t.Errorf("%d spans were left to the agent and %d counted", left, counted.Aggregated())
	}
}

// TestPublisher_ReleasesScratch: a publisher releases the scratch of a large request body,
// because there are many publishers.
func TestPublisher_ReleasesScratch(t *testing.T) {
	h := newHarness(t, nil)
	p := h.NewPublisher(span.Origin{Service: "a"})
	slots := h.config.Aggregator.RingSlots()
	if reason, ok := h.offer(p, body(slots+1)); ok || reason != DropBatchTooLarge ||
		len(p.finder.keys.known) > 0 {
		t.Errorf("more than the rings hold was answered with %s, and %d keys were read", reason,
			len(p.finder.keys.known))
	}
	if reason, ok := h.offer(p, body(slots)); !ok {
		t.Errorf("as much as the ring holds was refused as %s", reason)
	}
	if held := cap(p.batch.slots); held > h.config.MaxBatch {
		t.Errorf("the publisher keeps room for %d slots", held)
	}
	h.finish(p)
}

// TestFlood_SmallBatchesLeaveRoom: publishers that fill a ring with small batches leave room for
// the batch of another one.
func TestFlood_SmallBatchesLeaveRoom(t *testing.T) {
	const slots = 4096
	h := newHarness(t, func(c *Config, a *aggregate.Config) { a.RingSlots, c.WaitBudget = slots, 0 })
	modest := h.NewPublisher(span.Origin{Service: "modest"})
	all := []*Publisher{modest}
	for flood := range 4 {
		c := h.NewConnection(span.Origin{Service: fmt.Sprint("flood", flood)}, 0)
		all = append(all, c)
		for range 3 * slots / 64 {
			if err := c.Publish(spans(64, key("flood"))); err != nil {
				t.Fatal(err)
			}
		}
	}
	if reason, ok := h.offer(modest, spans(16, key("modest"))); !ok {
		t.Errorf("refused as %s where %d slots are free", reason, h.aggregator.Ring(0).Free())
	}
	h.finish(all...)
}

// TestWaitBudget_RefillsSlowly compares the rest of the budget with the time that was waited.
func TestWaitBudget_RefillsSlowly(t *testing.T) {
	const most = 20 * time.Millisecond
	now := time.Unix(1000, 0)
	var w waitBudget
	wait := func(d time.Duration) (waited time.Duration) {
		for waited < d && w.refill(now, most) {
			now = now.Add(time.Millisecond)
			waited += time.Millisecond
			w.spendSinceRefill(now)
		}
		return waited
	}
	for _, step := range []struct{ rest, want time.Duration }{
		{0, most}, // a connection has all of it at first
		{0, 0},
		{9 * time.Millisecond, time.Millisecond}, // a started wait is not shortened
		{time.Millisecond, 0},
		{50 * time.Millisecond, 5 * time.Millisecond},
		{time.Hour, most},
	} {
		now = now.Add(step.rest)
		if got := wait(time.Second); got != step.want {
			t.Errorf("%s after the last wait it waits for %s, want %s", step.rest, got, step.want)
		}
	}
	if w.refill(now, 0) {
		t.Error("there is some where there may be none")
	}
}

// TestWaitBudget_CoversPausedDrainers: if drainers pause for less than the wait budget, no batch is
// lost.
func TestWaitBudget_CoversPausedDrainers(t *testing.T) {
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

// TestWaitBudget_Zero: without a budget, a batch that does not fit is dropped immediately.
func TestWaitBudget_Zero(t *testing.T) {
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

// TestRetry_CountedOnce: retries do not count spans or keys again.
func TestRetry_CountedOnce(t *testing.T) {
	h := newHarness(t, func(c *Config, a *aggregate.Config) {
		c.WaitBudget, a.RingSlots, a.Budgets[span.LabelResource] = 5*retryPause, 1024, 1
	})
	p := h.NewConnection(span.Origin{Service: "shop"}, 0)
	unique := func(name string, n int) []byte {
		return bodyOf(n, func(i int, frame []byte) []byte {
			return wire.AppendWhole(frame, key(fmt.Sprint(name, i)), 1000, time.Now().UnixNano(), 0, 1)
		})
	}
	// The registry mistakes about one key in a thousand for a recurring one. If retries made keys
	// look like recurring ones, there would be two hundred of them.
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
