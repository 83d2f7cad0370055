package client

import (
	"iter"
	"slices"
	"sync/atomic"

	"github.com/spanstatsd/spanstatsd/internal/wire"
	"golang.org/x/sys/cpu"
)

const (
	bufferBytes = 64 << 10
	defineRoom  = 16 << 10
	// frameSpans is the maximum number of snapshots per message, which every daemon accepts.
	frameSpans = wire.MinMaxBatch
	// The maximum length of a snapshot and of a definition without the key, and of a message header.
	snapshotRoom   = 64
	definitionRoom = 16
	headerRoom     = 16
)

// buffer is a fixed block of memory with two sections. Definitions grow from its start as one
// message, spans messages from the fixed boundary on. When the buffer is sealed, the definitions
// are moved next to the messages, so that one write sends both.
type buffer struct {
	memory      []byte
	definitions []byte // the define message; empty without keys
	keys        int
	frames      []byte // spans messages, one after another
	open        mark   // the last message, which can take more snapshots

	head, end int // range of the sealed content in memory

	spans int
	upTo  uint64        // number of its last span on the connection, once it was sent
	next  *buffer       // next in the chain of a batch that fills several buffers
	below atomic.Uint32 // next in a stack
	index uint32
}

// mark is a state that a buffer can be reset to. Definitions are not reset, because unused ones do
// no harm.
type mark struct {
	length int // of frames
	start  int // of the last message
	count  int // snapshots of the last message; 0 if there is none
	spans  int // of the buffer
}

// empty prepares the buffer for filling.
func (b *buffer) empty() {
	b.definitions, b.keys = b.memory[:0:defineRoom], 0
	b.frames, b.open = b.memory[defineRoom:defineRoom], mark{}
	b.spans, b.next = 0, nil
}

func (b *buffer) mark() mark {
	m := b.open
	m.length, m.spans = len(b.frames), b.spans
	return m
}

// rewind removes everything that was appended since the mark.
func (b *buffer) rewind(m mark) {
	b.frames, b.open, b.spans = b.frames[:m.length], m, m.spans
	b.finishMessage()
}

// finishMessage writes the length and the count of the last message. It is called again if more is
// appended.
func (b *buffer) finishMessage() {
	if b.open.count > 0 {
		wire.EndSpans(b.frames, b.open.start, b.open.count)
	}
}

// fits reports whether n more bytes fit among the messages.
func (b *buffer) fits(n int) bool { return n <= cap(b.frames)-len(b.frames) }

// appendNumbered appends a snapshot that fits, with the number of its key. The buffer is not
// reallocated, so only the new length is stored, which avoids a write barrier.
func (b *buffer) appendNumbered(s *Snapshot, number uint32) {
	duration, end, flags, weight := s.facts()
	b.frames = b.frames[:len(wire.AppendNumbered(b.frames, number, duration, end, flags, weight))]
}

// appendWhole appends a snapshot that fits, with its encoded key.
func (b *buffer) appendWhole(s *Snapshot, raw []byte) {
	duration, end, flags, weight := s.facts()
	b.frames = wire.AppendWhole(b.frames, raw, duration, end, flags, weight)
}

// seal prepares the buffer for sending.
func (b *buffer) seal() {
	if b.keys > 0 {
		wire.EndDefine(b.definitions, 0, b.keys)
	}
	b.head = defineRoom - len(b.definitions)
	b.end = defineRoom + len(b.frames)
	copy(b.memory[b.head:], b.definitions)
}

// bytes returns the messages of a sealed buffer.
func (b *buffer) bytes() []byte { return b.memory[b.head:b.end] }

// messages iterates over the messages of a sealed buffer with their numbers of spans, which are 0
// for definitions.
func (b *buffer) messages() iter.Seq2[[]byte, int] {
	return func(yield func(message []byte, spans int) bool) {
		for rest := b.bytes(); len(rest) > 0; {
			end := wire.HeaderLen + int(wire.FrameLength(rest))
			if !yield(rest[:end], messageSpans(rest[wire.HeaderLen:end])) {
				return
			}
			rest = rest[end:]
		}
	}
}

// sentSpans returns the number of spans in the messages that are completely within the first n
// bytes.
func (b *buffer) sentSpans(n int) (spans int) {
	for message, count := range b.messages() {
		if n -= len(message); n < 0 {
			break
		}
		spans += count
	}
	return spans
}

// retain removes the messages of spans that are not wanted. The others keep their order and the
// definitions that they need. isWanted is called with the number of spans of each message.
func (b *buffer) retain(isWanted func(spans int) bool) {
	var definitions []byte // definitions to copy before the next message
	end := b.head
	b.spans = 0
	for message, spans := range b.messages() {
		switch {
		case spans == 0:
			definitions = message
		case isWanted(spans):
			end += copy(b.memory[end:], definitions)
			end += copy(b.memory[end:], message)
			b.spans += spans
			definitions = nil
		}
	}
	b.end = end
}

// join appends the messages of another buffer, and reports whether they fit.
func (b *buffer) join(other *buffer) bool {
	if len(b.memory)-b.end < len(other.bytes()) {
		return false
	}
	b.end += copy(b.memory[b.end:], other.bytes())
	b.spans, b.upTo = b.spans+other.spans, other.upTo
	return true
}

// messageSpans returns the number of spans in a message of this client.
func messageSpans(message []byte) int {
	kind, body, err := wire.Split(message)
	if err != nil {
		panic("BUG: client buffer holds a malformed message: " + err.Error())
	}
	if kind != wire.TypeSpans {
		return 0
	}
	w, err := wire.WalkSpans(body)
	if err != nil {
		panic("BUG: client buffer holds a malformed batch: " + err.Error())
	}
	return w.Len()
}

// pool contains all buffers. Publishers take free buffers and pass on sealed ones without a lock,
// so that a publisher preempted in between blocks no other.
type pool struct {
	buffers []buffer
	_       cpu.CacheLinePad
	free    stack
	_       cpu.CacheLinePad
	sealed  stack
	_       cpu.CacheLinePad
}

// newPool returns a pool of free buffers that share one allocation.
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

// take returns an empty buffer, or nil. The most recently used one comes first, so unneeded memory
// is never touched.
func (p *pool) take() *buffer {
	b := p.free.pop(p.buffers)
	if b != nil {
		b.empty()
	}
	return b
}

func (p *pool) give(b *buffer) { p.free.push(b) }

// seal passes a buffer to the sender.
func (p *pool) seal(b *buffer) {
	b.seal()
	p.sealed.push(b)
}

// appendSealed removes all sealed buffers from the pool and appends them, oldest first.
func (p *pool) appendSealed(dst []*buffer) []*buffer {
	start := len(dst)
	for b := p.sealed.pop(p.buffers); b != nil; b = p.sealed.pop(p.buffers) {
		dst = append(dst, b)
	}
	slices.Reverse(dst[start:])
	return dst
}

// stack is a lock-free stack of buffers. The low half of head is the index of the top buffer plus
// one. The high half counts changes, so that compare-and-swap fails if a buffer was popped and
// pushed again (ABA problem).
type stack struct{ head atomic.Uint64 }

func (s *stack) isEmpty() bool { return uint32(s.head.Load()) == 0 }

// push adds a buffer to the top.
func (s *stack) push(b *buffer) {
	for {
		head := s.head.Load()
		b.below.Store(uint32(head))
		if s.head.CompareAndSwap(head, nextHead(head, b.index+1)) {
			return
		}
	}
}

// pop removes and returns the top buffer, or returns nil.
func (s *stack) pop(buffers []buffer) *buffer {
	for {
		head := s.head.Load()
		if uint32(head) == 0 {
			return nil
		}
		b := &buffers[uint32(head)-1]
		if s.head.CompareAndSwap(head, nextHead(head, b.below.Load())) {
			return b
		}
	}
}

func nextHead(head uint64, top uint32) uint64 {
	return (head>>32+1)<<32 | uint64(top)
}
