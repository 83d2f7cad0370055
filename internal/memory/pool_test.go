package memory

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"testing"
)

// TestPool_ChargesExactBytes takes, grows and releases buffers at random. It checks that the pool counts their
// bytes exactly, that used and spare buffers together stay within the limit, and that no two buffers share memory.
func TestPool_ChargesExactBytes(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 5))
	const limit = 1 << 16
	pool := NewPool(limit, 4)
	var held []*Buffer
	overLimit, reused := 0, 0
	for step := range 20_000 {
		size := 1 + rnd.IntN(limit/4)
		switch {
		case len(held) == 0 || rnd.IntN(3) > 0:
			spares := len(pool.spares)
			if b := pool.Take(size); b == nil {
				overLimit++
			} else {
				if len(b.Bytes()) < size {
					t.Fatalf("step %d: %d bytes were allocated, %d were requested", step, len(b.Bytes()), size)
				}
				reused += spares - len(pool.spares)
				fill(b, byte(len(held)+1))
				held = append(held, b)
			}
		case rnd.IntN(2) == 0:
			b := held[rnd.IntN(len(held))]
			keep := len(b.Bytes())
			before := bytes.Clone(b.Bytes())
			if b.Grow(size, keep) && !bytes.Equal(b.Bytes()[:keep], before) {
				t.Fatalf("step %d: growing changed what is kept", step)
			}
			fill(b, b.Bytes()[0])
		default:
			last := len(held) - 1
			if b := held[last]; !bytes.Equal(b.Bytes(), bytes.Repeat(b.Bytes()[:1], len(b.Bytes()))) {
				t.Fatalf("step %d: a holder's bytes are another's as well", step)
			}
			held[last].Release()
			held[last].Release() // a second call has no effect
			held = held[:last]
		}
		sum := int64(0)
		for _, b := range held {
			sum += int64(len(b.Bytes()))
		}
		spared := int64(0)
		for _, spare := range pool.spares {
			spared += int64(len(spare))
		}
		if pool.Used() != sum || pool.spareBytes != spared || sum+spared > limit || len(pool.spares) > 4 {
			t.Fatalf("step %d: %d bytes are held and %d charged, %d spared and %d charged", step, sum,
				pool.Used(), spared, pool.spareBytes)
		}
	}
	if overLimit == 0 || reused == 0 {
		t.Errorf("%d were refused, %d spares used", overLimit, reused)
	}
	for _, b := range held {
		b.Release()
	}
	pool.DropSpares()
	if pool.Used() != 0 || pool.spareBytes != 0 || pool.spares != nil {
		t.Errorf("%d bytes are held without a buffer, %d spared", pool.Used(), pool.spareBytes)
	}
}

func fill(b *Buffer, value byte) {
	for i := range b.Bytes() {
		b.Bytes()[i] = value
	}
}

// TestPool_RegardlessCountsAgainstLimit checks that a buffer of TakeRegardless counts against the limit of later buffers.
func TestPool_RegardlessCountsAgainstLimit(t *testing.T) {
	pool := NewPool(100, 0)
	first, last := pool.Take(80), pool.TakeRegardless(80)
	if first == nil || last == nil || pool.Used() != 160 || pool.Take(1) != nil {
		t.Fatalf("%d bytes are held", pool.Used())
	}
	last.Release()
	if pool.Take(20) == nil || pool.Take(1) != nil || pool.Used() != 100 {
		t.Errorf("%d bytes are held", pool.Used())
	}
}

// TestPool_IsShared takes and releases buffers in several goroutines at the same time.
func TestPool_IsShared(t *testing.T) {
	pool := NewPool(1<<16, 3)
	var sharing sync.WaitGroup
	for i := range 4 {
		sharing.Go(func() {
			for n := range 2000 {
				if b := pool.Take(1 + (n*7919+i)%(1<<14)); b != nil {
					b.Grow(2*len(b.Bytes()), 1)
					b.Release()
				}
			}
		})
	}
	sharing.Wait()
	if pool.Used() != 0 {
		t.Errorf("%d bytes are held without a buffer", pool.Used())
	}
}

// TestPool_SpareWithinLimit releases a buffer of TakeRegardless that exceeded the limit.
func TestPool_SpareWithinLimit(t *testing.T) {
	pool := NewPool(100, 1)
	pool.Take(80)
	pool.TakeRegardless(80).Release()
	if pool.Used()+pool.spareBytes > 100 {
		t.Errorf("%d bytes are held and %d kept of 100", pool.Used(), pool.spareBytes)
	}
}
