package client

import (
	"slices"
	"sync/atomic"

	"golang.org/x/sys/cpu"
)

// pool contains all buffers. Publishers take free buffers and submit full ones without a lock, so a publisher that the
// scheduler interrupts blocks no other.
type pool struct {
	buffers   []buffer
	_         cpu.CacheLinePad
	free      stack
	_         cpu.CacheLinePad
	submitted stack // sealed buffers that the sender has not taken yet
	_         cpu.CacheLinePad
}

func newPool(count int) *pool {
	p := &pool{buffers: make([]buffer, count)}
	memory := make([]byte, count*bufferBytes)
	for i := count - 1; i >= 0; i-- {
		b := &p.buffers[i]
		b.memory = memory[i*bufferBytes : (i+1)*bufferBytes : (i+1)*bufferBytes]
		b.index = uint32(i)
		p.release(b)
	}
	return p
}

// take returns an empty buffer, or nil if none is free. It prefers the buffer that was released last, so that a client
// that needs few buffers touches little memory.
func (p *pool) take() *buffer {
	b := p.free.pop(p.buffers)
	if b != nil {
		b.reset()
	}
	return b
}

// release makes a buffer free.
func (p *pool) release(b *buffer) { p.free.push(b) }

// submit prepares a buffer for sending and makes it available to the sender.
func (p *pool) submit(b *buffer) {
	b.seal()
	p.submitted.push(b)
}

// takeSubmitted removes all buffers that were submitted for sending, and appends them to dst, oldest first.
func (p *pool) takeSubmitted(dst []*buffer) []*buffer {
	start := len(dst)
	for {
		newest := p.submitted.pop(p.buffers)
		if newest == nil {
			break
		}
		dst = append(dst, newest)
	}
	slices.Reverse(dst[start:])
	return dst
}

// stack is a lock-free stack of buffers. The low half of head is the index of the top buffer plus 1, or 0.
// The high half counts changes: without it, a compare-and-swap would succeed although the top buffer was
// popped and pushed again in between (the ABA problem).
type stack struct{ head atomic.Uint64 }

func (s *stack) isEmpty() bool { return uint32(s.head.Load()) == 0 }

func (s *stack) push(b *buffer) {
	for {
		head := s.head.Load()
		b.below.Store(uint32(head))
		if s.head.CompareAndSwap(head, nextHead(head, b.index+1)) {
			return
		}
	}
}

func (s *stack) pop(buffers []buffer) *buffer {
	for {
		head := s.head.Load()
		top := uint32(head)
		if top == 0 {
			return nil
		}
		b := &buffers[top-1]
		if s.head.CompareAndSwap(head, nextHead(head, b.below.Load())) {
			return b
		}
	}
}

// nextHead returns the value of stack.head after one more change. top is the index of the new top buffer plus 1.
func nextHead(head uint64, top uint32) uint64 {
	changes := head>>32 + 1
	return changes<<32 | uint64(top)
}

// bufferList is a linked list of buffers. Adding a buffer allocates no memory.
type bufferList struct {
	first, last *buffer
	length      int
}

// append adds a buffer at the end of the list.
func (l *bufferList) append(b *buffer) {
	b.next = nil
	if l.last == nil {
		l.first = b
	} else {
		l.last.next = b
	}
	l.last = b
	l.length++
}

// removeFirst removes the first buffer and returns it. It returns nil if the list is empty.
func (l *bufferList) removeFirst() *buffer {
	b := l.first
	if b == nil {
		return nil
	}
	l.first = b.next
	if l.first == nil {
		l.last = nil
	}
	b.next = nil
	l.length--
	return b
}
