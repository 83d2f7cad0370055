package client

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// The test publishes from many goroutines while the daemon is shut down, restarted and paused, and changes
// its features. Every span that the client counts as sent was counted by a daemon, and the numbers in Stats
// balance.
func TestHammer(t *testing.T) {
	d := newFakeDaemon(t).start()
	c := open(t, Config{
		Socket: d.socket, BufferBytes: 8 * bufferBytes, MaxAge: time.Millisecond,
		MaxBackoff: time.Millisecond, MaxAway: 2 * time.Millisecond,
	})
	offered, stop := publishMuch(t, c)
	r := rand.New(rand.NewPCG(10, 11))
	for range 40 {
		time.Sleep(time.Duration(r.IntN(15)) * time.Millisecond)
		switch r.IntN(4) {
		case 0, 1:
			d.stop()
			time.Sleep(time.Duration(r.IntN(2)) * 10 * time.Millisecond) // too long, or not
			d.start()
		case 2:
			var paused []*fakeConn // other connections may be added meanwhile
			d.each(func(f *fakeConn) {
				f.reading.Lock()
				paused = append(paused, f)
			})
			time.Sleep(5 * time.Millisecond)
			for _, f := range paused {
				f.reading.Unlock()
			}
		case 3:
			d.setFeatures(wire.Features{Stats: r.IntN(3) > 0})
		}
	}
	d.setFeatures(wire.Features{Stats: true})
	stop()
	flushThrough(t, c)
	mustClose(t, c)
	d.stop()
	checkAccounting(t, c, offered.Load())
	s := c.Stats()
	if d.spans != s.Sent {
		t.Errorf("daemons counted %d spans, sent are %d", d.spans, s.Sent)
	}
	if s.Connects < 3 || s.Sent == 0 {
		t.Errorf("the test had too few reconnects or spans: %+v", s)
	}
	reported := sum(d.lost)
	if counted := sum(s.Refused) + sum(s.Lost); reported > counted {
		t.Errorf("the daemons were notified of %d lost spans, the client counts %d", reported, counted)
	}
}

// publishMuch publishes from several goroutines and checks Stats, until it is stopped.
func publishMuch(t *testing.T, c *Client) (offered *atomic.Uint64, stop func()) {
	offered = new(atomic.Uint64)
	var isStopped atomic.Bool
	var running sync.WaitGroup
	for i := range 6 {
		running.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 9))
			for !isStopped.Load() {
				batch := randomBatch(r, 1+r.IntN(80))
				c.Publish(batch)
				offered.Add(uint64(len(batch)))
				if r.IntN(8) == 0 {
					time.Sleep(time.Millisecond)
				}
			}
		})
	}
	running.Go(func() {
		for before := c.Stats(); !isStopped.Load(); time.Sleep(time.Millisecond) {
			s := c.Stats()
			if s.Buffered > s.Published || s.Sent < before.Sent || s.Published < before.Published {
				t.Errorf("stats went from %+v to %+v", before, s)
				return
			}
			before = s
		}
	})
	return offered, func() {
		isStopped.Store(true)
		running.Wait()
	}
}

// The test publishes from many goroutines while daemons are killed, shut down or stalled, want no
// statistics for a while, and know no earlier connections. No span is counted twice, missing spans are
// accounted for, and the numbers in Stats balance at any moment.
func TestHammer_Kills(t *testing.T) {
	d := newFakeDaemon(t)
	d.settles, d.history = true, newHistory(7)
	d.start()
	c := open(t, Config{
		Socket: d.socket, BufferBytes: 8 * bufferBytes, MaxKept: 8 * bufferBytes, MaxAge: time.Millisecond,
		MaxBackoff: time.Millisecond,
	})
	stop := publishNumbered(t, c)
	r := rand.New(rand.NewPCG(12, 13))
	for range 80 {
		time.Sleep(time.Duration(r.IntN(10)) * time.Millisecond)
		switch r.IntN(8) {
		case 0:
			d.stop()
			d.start()
		case 1:
			d.setFeatures(wire.Features{Stats: r.IntN(3) > 0})
		case 2:
			d.history.mu.Lock()
			d.history.discards = r.IntN(2) == 0
			d.history.mu.Unlock()
		case 3, 4:
			d.settleSome()
		case 5:
			d.hang()
			time.Sleep(2 * time.Millisecond)
			d.kill()
			d.start()
		default:
			d.kill()
			d.start()
		}
	}
	d.setFeatures(wire.Features{Stats: true})
	accepted := stop()
	flushThrough(t, c)
	mustClose(t, c)
	d.stop()
	checkHistory(t, d, c, accepted)
}

// publishNumbered publishes numbered spans from several goroutines and checks Stats, until it is stopped.
func publishNumbered(t *testing.T, c *Client) (stop func() (accepted map[uint64]bool)) {
	var isStopped atomic.Bool
	var running sync.WaitGroup
	var mu sync.Mutex
	accepted := map[uint64]bool{}
	for i := range uint64(6) {
		running.Go(func() {
			r := rand.New(rand.NewPCG(i, 9))
			next := i << 32
			var mine []uint64
			for !isStopped.Load() {
				size := 1 + r.IntN(80)
				if c.Publish(numbered(next, size)) {
					for n := range uint64(size) {
						mine = append(mine, next+n)
					}
				}
				next += uint64(size)
				time.Sleep(time.Duration(r.IntN(2)) * time.Millisecond)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, number := range mine {
				accepted[number] = true
			}
		})
	}
	running.Go(func() {
		for ; !isStopped.Load(); runtime.Gosched() {
			if s := c.Stats(); s.Buffered > s.Published || s.Sent+s.Buffered+sum(s.Lost) != s.Published {
				t.Errorf("stats %+v", s)
				return
			}
		}
	})
	return func() map[uint64]bool {
		isStopped.Store(true)
		running.Wait()
		return accepted
	}
}

// Spans that a killed daemon has not read are lost, the numbers in Stats balance, and no span is counted
// twice.
func TestClient_DaemonKilled(t *testing.T) {
	d := newFakeDaemon(t).start()
	c := open(t, Config{Socket: d.socket, MaxAge: time.Millisecond, MaxBackoff: time.Millisecond})
	offered := uint64(0)
	for range 20 {
		for range 30 {
			c.Publish(sampleBatch(200))
			offered += 200
		}
		d.kill()
		d.start()
	}
	flushThrough(t, c)
	mustClose(t, c)
	d.stop()
	checkAccounting(t, c, offered)
	if d.spans > c.Stats().Sent {
		t.Errorf("daemons counted %d spans, sent are only %d", d.spans, c.Stats().Sent)
	}
}

// flushThrough calls Flush until a daemon responds, because the request can be lost with a daemon that is killed.
func flushThrough(t *testing.T, c *Client) {
	t.Helper()
	for {
		err := c.Flush(t.Context())
		if err == nil {
			return
		}
		if !errors.Is(err, errDisconnected) {
			t.Fatal(err)
		}
	}
}
