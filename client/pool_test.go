package client

import (
	"sync"
	"testing"
	"unsafe"
)

// TestPoolHoldsEachBufferOnce: however many take and give at once, no buffer is
// with two of them.
func TestPoolHoldsEachBufferOnce(t *testing.T) {
	p := newPool(5)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 5000 {
				if b := p.take(); b != nil {
					b.spans++ // the race detector sees a second owner
					if b.spans != 1 {
						t.Error("a buffer has two owners")
					}
					p.give(b)
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

func TestSealedComeInOrder(t *testing.T) {
	p := newPool(4)
	for range 3 {
		p.seal(p.take())
	}
	for i, b := range p.appendSealed(nil) {
		if b.index != uint32(i) {
			t.Errorf("buffer %d comes at place %d", b.index, i)
		}
	}
}

// TestShardsShareNoCacheLine: publishers on two shards write to memory that lies apart.
func TestShardsShareNoCacheLine(t *testing.T) {
	var two [2]shard
	end := unsafe.Offsetof(two[0].refused) + unsafe.Sizeof(two[0].refused)
	if gap := unsafe.Sizeof(two[0]) - end; gap < 64 {
		t.Errorf("the next shard begins %d bytes behind the counters", gap)
	}
}

// TestAHeadThatCameBackIsAnother: who was stopped between reading a stack's head and
// replacing it fails, though the same buffer is on top again.
func TestAHeadThatCameBackIsAnother(t *testing.T) {
	p := newPool(2)
	before := p.free.head.Load()
	p.give(p.take())
	if after := p.free.head.Load(); after == before || uint32(after) != uint32(before) {
		t.Errorf("the head was %x, and is %x after a buffer was taken and given back", before, after)
	}
}
