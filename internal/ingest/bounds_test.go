package ingest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// The tests of this file hold bounds to the last one that is allowed.

// framesOf reads bytes as a connection would.
func framesOf(data []byte, maxFrame int, all *buffers) *frames {
	return newFrames(&pieces{rnd: rand.New(rand.NewPCG(1, 1)), data: data}, maxFrame, time.Second, nil, all)
}

// TestAFrameIsAsLongAsTheWelcomeSays: one of that length is read, and one longer by a byte
// is refused.
func TestAFrameIsAsLongAsTheWelcomeSays(t *testing.T) {
	const most = 200_000
	if message, err := framesOf(raw(make([]byte, most)...), most, ample()).next(); err != nil ||
		len(message) != most {
		t.Errorf("%d bytes were read of %d: %v", len(message), most, err)
	}
	if _, err := framesOf(raw(make([]byte, most+1)...), most, ample()).next(); FaultOf(err) != FaultTooLarge {
		t.Errorf("one byte more: %v", err)
	}
	if _, err := framesOf(binary.BigEndian.AppendUint32(nil, most+1), most,
		ample()).next(); FaultOf(err) != FaultTooLarge {
		t.Errorf("only its length: %v", err)
	}
}

// ends is a connection that says that it has ended with the last of what it held.
type ends struct{ pieces }

func (e *ends) Read(to []byte) (int, error) {
	n := copy(to, e.data)
	e.data = e.data[n:]
	return n, io.EOF
}

// TestTheLastBytesAreReadWithTheEnd: an end that comes with bytes does not hide them.
func TestTheLastBytesAreReadWithTheEnd(t *testing.T) {
	f := newFrames(&ends{pieces{data: raw(1, 2, 3)}}, 1<<20, time.Second, nil, ample())
	if message, err := f.next(); err != nil || len(message) != 3 {
		t.Errorf("%d bytes were read of 3: %v", len(message), err)
	}
	if _, err := f.next(); !errors.Is(err, io.EOF) {
		t.Errorf("ended with %v", err)
	}
}

// TestALargeBufferIsGivenBack once its frame is done with, and where the connection ends
// within one.
func TestALargeBufferIsGivenBack(t *testing.T) {
	all := ample()
	large := raw(make([]byte, 2*baseBuffer)...)
	f := framesOf(bytes.Join([][]byte{large, raw(1), large[:len(large)-1]}, nil), 1<<20, all)
	if _, err := f.next(); err != nil || all.pool.Held() == 0 {
		t.Fatalf("a large frame took %d bytes: %v", all.pool.Held(), err)
	}
	if _, err := f.next(); err != nil || all.pool.Held() != 0 {
		t.Errorf("%d bytes are taken behind a large frame: %v", all.pool.Held(), err)
	}
	if _, err := f.next(); FaultOf(err) != FaultHalfFrame || all.pool.Held() == 0 {
		t.Fatalf("half a large frame took %d bytes: %v", all.pool.Held(), err)
	}
	if f.release(); all.pool.Held() != 0 {
		t.Errorf("%d bytes are taken by a connection that ended", all.pool.Held())
	}
}

// TestANumberIsBelowMaxKeys: the last one below stands for a key, and the next is a fault.
func TestANumberIsBelowMaxKeys(t *testing.T) {
	h := start(t, nil)
	most := uint32(h.config.Admit.MaxKeys())
	c := h.connect("shop")
	c.send(define(most-1, key("r")))
	c.settle()
	c = h.connect("shop")
	if _, err := c.Write(define(most, key("r"))); err != nil {
		t.Fatal(err)
	}
	if reason := c.farewell(); reason != FaultBadMessage.String() {
		t.Errorf("closed with %q", reason)
	}
}

// TestAConnectionIsOwedAFewAnswers: one question more than that is refused at once, and the
// others are answered.
func TestAConnectionIsOwedAFewAnswers(t *testing.T) {
	reported := make(chan struct{})
	h := newHarness(t, func(*configs, *aggregate.Config) {})
	h.config.Report = func(context.Context) error { <-reported; return nil }
	h.aggregator.Start()
	h.Start()
	t.Cleanup(h.stop)
	c := h.connect("shop")
	for id := range uint64(maxOpenFlushes + 1) {
		c.send(wire.AppendFlush(nil, &wire.Flush{ID: id}))
	}
	answer := func() wire.Flush {
		_, body := c.read()
		flush, err := wire.DecodeFlush(body)
		if err != nil {
			t.Fatal(err)
		}
		return flush
	}
	if first := answer(); first.ID != maxOpenFlushes || first.OK {
		t.Errorf("the first answer is %+v", first)
	}
	close(reported)
	for range maxOpenFlushes {
		if next := answer(); !next.OK || next.ID >= maxOpenFlushes {
			t.Errorf("an answer is %+v", next)
		}
	}
}
