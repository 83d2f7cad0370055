package ingest

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
)

// TestLargeFramesWaitForSpace has one connection hold all the space with a frame
// that it doesn't complete: another's waits, and goes on or gives up.
func TestLargeFramesWaitForSpace(t *testing.T) {
	large := raw(make([]byte, 200_000)...)
	for _, c := range []struct {
		name  string
		after func(s *space, held int, over chan struct{})
		want  Fault // FaultBug: none
	}{
		{"given back", func(s *space, held int, _ chan struct{}) { s.give(held) }, FaultBug},
		{"never given back", func(*space, int, chan struct{}) {}, FaultNoSpace},
		{"the daemon stops", func(_ *space, _ int, over chan struct{}) { close(over) }, FaultBug},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				over := make(chan struct{})
				s := &space{max: 300_000, over: over}
				hog := newFrames(&pieces{rnd: rand.New(rand.NewPCG(1, 1)), data: large[:100_000]}, 1<<20, time.Second, nil, s)
				if _, err := hog.next(); faultOf(err) != FaultHalfFrame {
					t.Fatal(err)
				}
				go func() {
					time.Sleep(time.Second / 2)
					c.after(s, len(hog.buf), over)
				}()
				f := newFrames(&pieces{rnd: rand.New(rand.NewPCG(2, 2)), data: large}, 1<<20, time.Second, nil, s)
				message, err := f.next()
				if c.want == FaultBug && (err != nil || len(message) != 200_000) || c.want != FaultBug && faultOf(err) != c.want {
					t.Errorf("a message of %d bytes and %v", len(message), err)
				}
				if s.waits.Load() != 1 {
					t.Errorf("%d frames waited", s.waits.Load())
				}
				before := s.used.Load()
				f.release()
				if took := before - s.used.Load(); err == nil && took != int64(len(large)) || err != nil && took != 0 {
					t.Errorf("%d bytes were given back", took)
				}
			})
		})
	}
}

// TestSmallFramesNeedNoSpace has connections take all the space there is and
// keep it, while a tracer of small frames sends.
func TestSmallFramesNeedNoSpace(t *testing.T) {
	h := start(t, func(c *Config, _ *aggregate.Config) {
		c.MaxFrame, c.MaxBufferBytes, c.ReadTimeout = 100_000, 200_000, 200*time.Millisecond
		c.Block = true // no span may be lost for want of room in a ring
	})
	for i := range 4 {
		c := h.connect(fmt.Sprint("hog", i))
		defer c.Close()
		c.send(raw(make([]byte, 100_000)...)[:80_000])
	}
	healthy := h.connect("healthy")
	for range 100 {
		healthy.send(spans(100, key("healthy")))
	}
	healthy.settle()
	for h.space.used.Load() > 0 {
		time.Sleep(time.Millisecond) // until the hogs have been cut off
	}
	h.stop()
	if got := h.rows["healthy"]; got != 10_000 {
		t.Errorf("the healthy tracer was counted %d of 10000", got)
	}
}

// TestLoansEndWhereAFrameWaits: nothing is lent then, and what is lent comes back.
func TestLoansEndWhereAFrameWaits(t *testing.T) {
	content := make([]byte, 3000)
	s := newSpace(2*wideBuffer, wideBuffer, nil)
	f := newFrames(&tap{frame: raw(content...)}, 1<<17, time.Second, nil, s)
	read := func() {
		for range 4 * wideAfter * baseBuffer / len(content) {
			if _, err := f.next(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if read(); len(f.buf) != wideBuffer {
		t.Fatal("a busy connection was lent nothing")
	}
	taken := make(chan bool)
	go func() { taken <- s.take(wideBuffer+1, time.Minute) }()
	for !s.isSought() {
		time.Sleep(time.Millisecond)
	}
	if read(); !<-taken || s.lent.Load() != 0 {
		t.Errorf("a frame waited, and %d bytes stayed lent", s.lent.Load())
	}
	if read(); len(f.buf) != baseBuffer {
		t.Error("there is no room, and some was lent")
	}
}
