package ingest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/eventually"
)

// TestLargeFramesWaitForSpace has one connection hold all the space with a frame
// that it doesn't complete: another's waits, and goes on or gives up.
func TestLargeFramesWaitForSpace(t *testing.T) {
	large := raw(make([]byte, 200_000)...)
	for _, c := range []struct {
		name  string
		after func(hog *frames, over chan struct{})
		want  Fault // FaultBug: none
	}{
		{"given back", func(hog *frames, _ chan struct{}) { hog.release() }, FaultBug},
		{"never given back", func(*frames, chan struct{}) {}, FaultNoSpace},
		{"the daemon stops", func(_ *frames, over chan struct{}) { close(over) }, FaultBug},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				over := make(chan struct{})
				s := newBuffers(300_000, over)
				hog := newFrames(&pieces{rnd: rand.New(rand.NewPCG(1, 1)), data: large[:100_000]}, 1<<20,
					time.Second, nil, s)
				if _, err := hog.next(); FaultOf(err) != FaultHalfFrame {
					t.Fatal(err)
				}
				go func() {
					time.Sleep(time.Second / 2)
					c.after(hog, over)
				}()
				f := newFrames(&pieces{rnd: rand.New(rand.NewPCG(2, 2)), data: large}, 1<<20, time.Second,
					nil, s)
				message, err := f.next()
				if c.want == FaultBug && (err != nil || len(message) != 200_000) ||
					c.want != FaultBug && FaultOf(err) != c.want {
					t.Errorf("a message of %d bytes and %v", len(message), err)
				}
				if s.waits.Load() != 1 {
					t.Errorf("%d frames waited", s.waits.Load())
				}
				before := s.pool.Held()
				f.release()
				if took := before - s.pool.Held(); err == nil && took < int64(len(large)) ||
					err != nil && took != 0 {
					t.Errorf("%d bytes were given back", took)
				}
			})
		})
	}
}

// TestALargeFramesBufferServesTheNext, also where that is somewhat longer, and no longer than
// there are connections.
func TestALargeFramesBufferServesTheNext(t *testing.T) {
	b := newBuffers(1<<20, nil)
	first := b.take(2*baseBuffer+1, 1<<20, 0)
	bytes := first.Bytes()
	first.Release()
	if next := b.take(3*baseBuffer, 1<<20, 0); &next.Bytes()[0] != &bytes[0] {
		t.Error("the next frame has memory of its own")
	}
	if most := 2*baseBuffer + 7; len(b.take(2*baseBuffer+1, most, 0).Bytes()) != most {
		t.Error("a buffer is longer than the largest frame")
	}
	h := start(t, nil)
	c := h.connect("web")
	frame := spans(4000, key(strings.Repeat("long", 20)))
	if len(frame) < 2*baseBuffer {
		t.Fatalf("a frame of %d bytes needs no buffer of its own", len(frame))
	}
	c.send(frame)
	c.settle()
	c.Close()
	eventually.True(t, "the connection has ended", func() bool { return len(h.Tracers()) == 0 })
	shorter := len(frame) - baseBuffer // a spare would be longer
	taken := h.buffers.pool.Take(shorter)
	if taken == nil || len(taken.Bytes()) != shorter {
		t.Error("a buffer is kept for nobody")
	}
	taken.Release()
}

// TestSmallFramesNeedNoSpace has connections take all the space there is and
// keep it, while a tracer of small frames sends.
func TestSmallFramesNeedNoSpace(t *testing.T) {
	h := start(t, func(c *configs, _ *aggregate.Config) {
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
	eventually.True(t, "the hogs are cut off", func() bool { return h.buffers.pool.Held() == 0 })
	h.stop()
	if got := h.rows["healthy"]; got != 10_000 {
		t.Errorf("the healthy tracer was counted %d of 10000", got)
	}
}
