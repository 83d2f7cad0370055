package client

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// Spans that are published at random times are sent together, at most MaxAge after the first of them, and before the end
// of their interval, except those that are published after the last write of an interval.
func TestSender_Schedule(t *testing.T) {
	dice := rand.New(rand.NewPCG(21, 5))
	for range 300 {
		interval := []time.Duration{0, time.Second, 3 * time.Second, 10 * time.Second}[dice.IntN(4)]
		s := newSchedule(1+rand.N(time.Duration(1)<<(10+dice.IntN(26))), uint64(interval))
		now := time.Unix(1_700_000_000, dice.Int64N(int64(time.Minute)))
		var leaves time.Time
		sent := 0
		for range 1000 {
			now = now.Add(time.Duration(dice.ExpFloat64() * float64(s.maxWait) / float64(1+dice.IntN(8))))
			if now.After(leaves) {
				leaves = now.Add(s.wait(now))
				sent++
			}
			if wait := leaves.Sub(now); wait > s.maxWait || wait < 0 {
				t.Fatalf("%+v: what was published at %s waits %s", s, now, wait)
			}
			if interval == 0 {
				continue
			}
			ends := now.Truncate(interval).Add(interval)
			if last := ends.Add(-s.lead); !now.After(last) && leaves.After(last) && !now.Equal(last) {
				t.Fatalf("%+v: what was published at %s leaves at %s, and its interval ends at %s", s, now,
					leaves, ends)
			}
		}
		if sent == 0 {
			t.Fatal("nothing was ever sent")
		}
	}
}

// A schedule ignores implausible intervals, and the leads of clients differ.
func TestSchedule_FollowsDaemon(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for _, interval := range []uint64{
		0, 1, uint64(minInterval) - 1, uint64(maxInterval) + 1, math.MaxInt64,
		math.MaxUint64,
	} {
		if s := newSchedule(time.Minute, interval); s.interval != 0 || s.wait(now) != time.Minute {
			t.Errorf("an interval of %d makes %+v", interval, s)
		}
	}
	leads := map[time.Duration]bool{}
	for range 20 {
		s := newSchedule(time.Hour, uint64(10*time.Second))
		if s.lead < minLead || s.lead >= minLead+randomLead || s.wait(now) != 10*time.Second-s.lead {
			t.Errorf("ten seconds make %+v and a wait of %s", s, s.wait(now))
		}
		leads[s.lead] = true
	}
	if len(leads) < 2 {
		t.Error("all tracers would send at one moment")
	}
}

// A client with a large MaxAge sends before the end of each interval. Before that, it sends full buffers immediately,
// and everything on Flush and Close.
func TestSender_SendsBeforeIntervalEnds(t *testing.T) {
	d := newFakeDaemon(t)
	d.interval = uint64(minInterval)
	d.start()
	c := open(t, Config{Socket: d.socket, MaxAge: time.Hour})
	for n := range uint64(2) {
		c.Publish(sampleBatch(1))
		eventually(t, "what was published is sent", func() bool { return d.spansSeen() == n+1 })
	}
	mustClose(t, c)
	checkAccounting(t, c, 2)
}

func TestSender_SendsFullBuffersAndFlushes(t *testing.T) {
	d := newFakeDaemon(t)
	d.interval = uint64(maxInterval)
	d.start()
	// one shard
	c := open(t, Config{Socket: d.socket, MaxAge: time.Hour, BufferBytes: minBuffers * bufferBytes})
	eventually(t, "connected", func() bool { return c.Stats().Connected })
	offered := uint64(0)
	for c.Stats().Sent == 0 { // until a buffer is full
		if c.Publish(sampleBatch(64)) {
			offered += 64
		}
	}
	if c.Stats().Buffered == 0 && !c.Publish(sampleBatch(64)) {
		t.Fatal("an empty buffer took nothing")
	}
	offered = c.Stats().Published
	if err := c.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	if seen := d.spansSeen(); seen != offered {
		t.Errorf("after a flush %d of %d spans have arrived", seen, offered)
	}
	c.Publish(sampleBatch(7))
	mustClose(t, c)
	if seen := d.spansSeen(); seen != offered+7 {
		t.Errorf("after Close %d of %d spans have arrived", seen, offered+7)
	}
}
