package client

import (
	"slices"
	"sync/atomic"

	"golang.org/x/sys/cpu"
)

// pool is all buffers there are. Publishers take free ones and leave sealed
// ones without any lock, so that one who is stopped in between stops nobody.
type pool struct {
	buffers []buffer
	_       cpu.CacheLinePad
	free    stack
	_       cpu.CacheLinePad
	sealed  stack
	_       cpu.CacheLinePad
}

func newPool(count int) *pool {
	p := &pool{buffers: make([]buffer, count)}
	memory := make([]byte, count*bufferBytes)
	for i := count - 1; i >= 0; i-- {
		b := &p.buffers[i]
		b.memory = memory[i*bufferBytes : (i+1)*bufferBytes : (i+1)*bufferBytes]
		b.index = uint32(i)
		p.give(b)
	}
	return p
}

// take returns an empty buffer, or nil. The one that was used last comes first,
// so memory that was never needed is never touched.
func (p *pool) take() *buffer {
	b := p.free.pop(p.buffers)
	if b != nil {
		b.empty()
	}
	return b
}

func (p *pool) give(b *buffer) { p.free.push(b) }

// seal hands a buffer to the sender.
func (p *pool) seal(b *buffer) {
	b.seal()
	p.sealed.push(b)
}

// appendSealed takes all sealed buffers, the oldest first.
func (p *pool) appendSealed(dst []*buffer) []*buffer {
	start := len(dst)
	for b := p.sealed.pop(p.buffers); b != nil; b = p.sealed.pop(p.buffers) {
		dst = append(dst, b)
	}
	slices.Reverse(dst[start:])
	return dst
}

// stack is a lock-free stack of buffers. Its head is a buffer's index plus one
// in the low half, and in the high half a count of changes, so that a head that
// was popped and pushed again is not taken for one that never moved.
type stack struct{ head atomic.Uint64 }

func (s *stack) isEmpty() bool { return uint32(s.head.Load()) == 0 }

func (s *stack) push(b *buffer) {
	for {
		head := s.head.Load()
		b.below.Store(uint32(head))
		if s.head.CompareAndSwap(head, changed(head, b.index+1)) {
			return
		}
	}
}

func (s *stack) pop(buffers []buffer) *buffer {
	for {
		head := s.head.Load()
		if uint32(head) == 0 {
			return nil
		}
		b := &buffers[uint32(head)-1]
		if s.head.CompareAndSwap(head, changed(head, b.below.Load())) {
			return b
		}
	}
}

func changed(head uint64, top uint32) uint64 {
	return (head>>32+1)<<32 | uint64(top)
}
