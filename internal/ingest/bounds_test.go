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

// The tests in this file check that limits are exact.

// framesOf returns a reader of data that arrives in pieces.
func framesOf(data []byte, maxFrame int, all *largeBuffers) *frameReader {
	return newFrameReader(&pieces{rnd: rand.New(rand.NewPCG(1, 1)), data: data}, maxFrame, time.Second, nil, all)
}

func TestFrame_MaximumLength(t *testing.T) {
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

// ends is a connection that returns io.EOF together with the last bytes.
type ends struct{ pieces }

func (e *ends) Read(to []byte) (int, error) {
	n := copy(to, e.data)
	e.data = e.data[n:]
	return n, io.EOF
}

// TestFrame_LastBytesWithEOF checks that bytes that are returned together with io.EOF are
// read.
func TestFrame_LastBytesWithEOF(t *testing.T) {
	f := newFrameReader(&ends{pieces{data: raw(1, 2, 3)}}, 1<<20, time.Second, nil, ample())
	if message, err := f.next(); err != nil || len(message) != 3 {
		t.Errorf("%d bytes were read of 3: %v", len(message), err)
	}
	if _, err := f.next(); !errors.Is(err, io.EOF) {
		t.Errorf("ended with %v", err)
	}
}

// TestFrames_LargeBufferIsReleased checks that a large buffer is released after its frame, and if the
// connection ends within the frame.
func TestFrames_LargeBufferIsReleased(t *testing.T) {
	all := ample()
	large := raw(make([]byte, 2*baseBuffer)...)
	f := framesOf(bytes.Join([][]byte{large, raw(1), large[:len(large)-1]}, nil), 1<<20, all)
	if _, err := f.next(); err != nil || all.pool.Used() == 0 {
		t.Fatalf("a large frame took %d bytes: %v", all.pool.Used(), err)
	}
	if _, err := f.next(); err != nil || all.pool.Used() != 0 {
		t.Errorf("%d bytes are used after a large frame: %v", all.pool.Used(), err)
	}
	if _, err := f.next(); FaultOf(err) != FaultIncompleteFrame || all.pool.Used() == 0 {
		t.Fatalf("half a large frame took %d bytes: %v", all.pool.Used(), err)
	}
	if f.releaseLarge(); all.pool.Used() != 0 {
		t.Errorf("%d bytes are used by a closed connection", all.pool.Used())
	}
}

func TestKeyNumber_Maximum(t *testing.T) {
	h := start(t, nil)
	most := uint32(h.config.Admit.MaxKeys())
	c := h.connect("shop")
	c.send(define(most-1, key("r")))
	c.settle()
	c = h.connect("shop")
	if _, err := c.Write(define(most, key("r"))); err != nil {
		t.Fatal(err)
	}
	if reason := c.byeReason(); reason != FaultBadMessage.String() {
		t.Errorf("closed with %q", reason)
	}
}

// TestFlush_LimitOfPendingReplies checks that a flush over the limit is rejected immediately, and
// that the others get a reply.
func TestFlush_LimitOfPendingReplies(t *testing.T) {
	reported := make(chan struct{})
	h := newHarness(t, func(*configs, *aggregate.Config) {})
	h.config.Deliver = func(context.Context) error { <-reported; return nil }
	h.aggregator.Start()
	h.Start()
	t.Cleanup(h.stop)
	c := h.connect("shop")
	for id := range uint64(maxPendingFlushes + 1) {
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
	if first := answer(); first.ID != maxPendingFlushes || first.OK {
		t.Errorf("the first answer is %+v", first)
	}
	close(reported)
	for range maxPendingFlushes {
		if next := answer(); !next.OK || next.ID >= maxPendingFlushes {
			t.Errorf("an answer is %+v", next)
		}
	}
}
