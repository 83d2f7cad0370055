package client

import (
	"math/rand/v2"
	"sync"
	"testing"
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// filledBuffer returns one sealed buffer with several messages.
func filledBuffer(t *testing.T) *buffer {
	p := newPool(4)
	s := &shard{pool: p, gate: new(gate)}
	r := rand.New(rand.NewPCG(5, 6))
	for _, size := range []int{256, 200, 100, 7, 250} {
		batch := sampleBatch(size)
		for i := range batch {
			batch[i].Key.HTTPStatus = r.Uint32N(30)
		}
		if why, _ := s.encodeBatch(batch); why != noReason {
			t.Fatalf("refused: %s", reasonNames[why])
		}
	}
	s.submitBuffer()
	return p.takeSubmitted(nil)[0]
}

// replay returns the spans that a daemon counts in bytes that can end anywhere.
func replay(t *testing.T, into *fakeDaemon, bytes []byte) {
	c := &fakeConn{keys: map[uint32][]byte{}}
	for len(bytes) >= wire.HeaderLen {
		end := wire.HeaderLen + int(wire.FrameLength(bytes))
		if end > len(bytes) {
			return
		}
		kind, body, err := wire.Split(bytes[wire.HeaderLen:end])
		if err == nil {
			err = into.take(c, kind, body)
		}
		if err != nil {
			t.Fatal(err)
		}
		bytes = bytes[end:]
	}
}

// cuts returns the positions in a sealed buffer at which the tests let a write end: around the end of each
// message, and many others.
func cuts(b *buffer) (at []int) {
	bytes := b.bytes()
	for i := 0; i < len(bytes); i += 97 {
		at = append(at, i)
	}
	for end := 0; end < len(bytes); {
		at = append(at, end, end+1, end+wire.HeaderLen)
		end += wire.HeaderLen + int(wire.FrameLength(bytes[end:]))
		at = append(at, end-1)
	}
	return append(at, len(bytes))
}

// For a write that ends at any position, the messages before it and those that are resent contain every
// span exactly once.
func TestBuffer_ResentAfterPartialWrite(t *testing.T) {
	complete := filledBuffer(t)
	want := &fakeDaemon{counts: map[string]tally{}}
	replay(t, want, complete.bytes())
	if want.spans != uint64(complete.spanCount) || complete.spanCount <= messageSpans {
		t.Fatalf("%d spans are in the buffer, which counts %d", want.spans, complete.spanCount)
	}
	memory := make([]byte, bufferBytes)
	for _, cut := range cuts(complete) {
		b := &buffer{
			memory: memory, sealedStart: complete.sealedStart, sealedEnd: complete.sealedEnd, spanCount: complete.spanCount,
		}
		copy(memory, complete.memory)
		got := &fakeDaemon{counts: map[string]tally{}}
		replay(t, got, b.bytes()[:cut])
		first := got.spans
		if handed := removeWritten(b, cut); uint64(handed) != first || b.spanCount != complete.spanCount-handed {
			t.Fatalf("cut at %d: the daemon counts %d spans, the buffer %d as sent", cut, first, handed)
		}
		replay(t, got, b.bytes())
		for key, n := range want.counts {
			if got.counts[key] != n {
				t.Fatalf("cut at %d: a key arrived as %+v, want %+v", cut, got.counts[key], n)
			}
		}
	}
}

// removeWritten removes the messages that a write of this many bytes has sent, as a sender does after a graceful
// shutdown.
func removeWritten(b *buffer, n int) (spans int) {
	spans = b.countWrittenSpans(n)
	at := 0
	b.filterMessages(func(spans1 int) bool { at += spans1; return at > spans })
	return spans
}

// The rest of a partially written buffer, which begins with a message of definitions, can be partially
// written again.
func TestBuffer_SecondPartialWrite(t *testing.T) {
	b := filledBuffer(t)
	spans := b.spanCount
	got := &fakeDaemon{counts: map[string]tally{}}
	for b.spanCount > 0 {
		// The definitions, one message and a little of the next.
		first := wire.HeaderLen + int(wire.FrameLength(b.bytes()))
		second := wire.HeaderLen + int(wire.FrameLength(b.bytes()[first:]))
		cut := min(len(b.bytes()), first+second+20)
		replay(t, got, b.bytes()[:cut])
		if removeWritten(b, cut) == 0 {
			t.Fatal("a complete message did not count as sent")
		}
	}
	if got.spans != uint64(spans) || b.spanCount != 0 {
		t.Errorf("%d of %d arrived, %d remain", got.spans, spans, b.spanCount)
	}
}

// A refused batch leaves a shard unchanged.
func TestShard_RefusedBatchChangesNothing(t *testing.T) {
	p := newPool(3)
	s := &shard{pool: p, gate: new(gate)}
	s.encodeBatch(sampleBatch(10))
	other := []*buffer{p.take()} // a buffer of another shard
	huge := sampleBatch(9000)
	if why, _ := s.encodeBatch(huge); why != bufferFull {
		t.Fatalf("refused as %s", reasonNames[why])
	}
	p.release(other[0])
	s.submitBuffer()
	got := &fakeDaemon{counts: map[string]tally{}}
	for _, b := range p.takeSubmitted(nil) {
		replay(t, got, b.bytes())
		p.release(b)
	}
	if got.spans != 10 {
		t.Errorf("%d spans are left of 10", got.spans)
	}
	for i := range 3 {
		if p.take() == nil {
			t.Fatalf("only %d of 3 buffers are free", i)
		}
	}
}

// Goroutines that take and give buffers concurrently never get the same buffer.
func TestPool_EachBufferHasOneOwner(t *testing.T) {
	p := newPool(5)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 5000 {
				if b := p.take(); b != nil {
					b.spanCount++ // the race detector reports a second owner
					if b.spanCount != 1 {
						t.Error("a buffer has two owners")
					}
					p.release(b)
				}
			}
		})
	}
	wg.Wait()
	for i := range 5 {
		if p.take() == nil {
			t.Fatalf("%d of 5 buffers are left", i)
		}
	}
	if p.take() != nil {
		t.Fatal("there is a sixth buffer")
	}
}

func TestSealedBuffers_KeepOrder(t *testing.T) {
	p := newPool(4)
	for range 3 {
		p.submit(p.take())
	}
	for i, b := range p.takeSubmitted(nil) {
		if b.index != uint32(i) {
			t.Errorf("buffer %d is at index %d", b.index, i)
		}
	}
}

// Publishers on two shards never write to the same cache line.
func TestShards_ShareNoCacheLine(t *testing.T) {
	var two [2]shard
	end := unsafe.Offsetof(two[0].refused) + unsafe.Sizeof(two[0].refused)
	if gap := unsafe.Sizeof(two[0]) - end; gap < 64 {
		t.Errorf("the next shard begins %d bytes after the counters", gap)
	}
}

// A goroutine that is interrupted between reading a stack's head and replacing it fails to replace it, even
// if the same buffer is on top again.
func TestPool_ReturnedHeadIsDetected(t *testing.T) {
	p := newPool(2)
	before := p.free.head.Load()
	p.release(p.take())
	if after := p.free.head.Load(); after == before || uint32(after) != uint32(before) {
		t.Errorf("the head was %x, and is %x after a buffer was taken and released", before, after)
	}
}
