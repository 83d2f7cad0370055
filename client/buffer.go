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
	// Upper bounds of the encoded length of a snapshot without its key, of a definition without its key, and of the
	// header of a message.
	snapshotRoom   = 64
	definitionRoom = 16
	headerRoom     = 16
)

// buffer is a fixed piece of memory with two sections. Definitions are appended at its start, as one
// message, and spans messages after a fixed boundary. When the buffer is sealed, the definitions are moved
// next to the spans messages, so that one write sends both.
//
// The messages of a buffer use key numbers that it defines itself, from 0. So a buffer can be sent on any
// connection, and shards need not agree on numbers.
type buffer struct {
	memory      []byte
	definitions []byte // define message; empty if the buffer defines no keys
	keys        int    // number of keys in definitions
	frames      []byte // spans messages
	open        mark   // last spans message, to which snapshots can be appended

	head, end int // range of the sealed messages in memory

	spans int
	upTo  uint64        // for a kept buffer: number of its last span on the connection
	next  *buffer       // next buffer in the list of a batch that fills several
	below atomic.Uint32 // for a buffer in a stack: index plus 1 of the buffer below it
	index uint32        // index in pool.buffers
}

// mark is a state that a buffer can be rewound to. Definitions are never removed: unused ones do no harm.
type mark struct {
	length int // length of frames
	start  int // start of the last message in frames
	count  int // number of snapshots in the last message; 0 if there is no message
	spans  int // number of spans in the buffer
}

// empty removes everything from the buffer.
func (b *buffer) empty() {
	b.definitions, b.keys = b.memory[:0:defineRoom], 0
	b.frames, b.open = b.memory[defineRoom:defineRoom], mark{}
	b.spans, b.next = 0, nil
}

// mark returns the current state for rewind.
func (b *buffer) mark() mark {
	m := b.open
	m.length, m.spans = len(b.frames), b.spans
	return m
}

// rewind removes the snapshots that were appended since the mark.
func (b *buffer) rewind(m mark) {
	b.frames, b.open, b.spans = b.frames[:m.length], m, m.spans
	b.finishMessage()
}

// finishMessage writes the length and the number of snapshots of the last message. It is called again after
// more snapshots were appended.
func (b *buffer) finishMessage() {
	if b.open.count > 0 {
		wire.EndSpans(b.frames, b.open.start, b.open.count)
	}
}

// fits reports whether n more bytes fit into the spans messages.
func (b *buffer) fits(n int) bool { return n <= cap(b.frames)-len(b.frames) }

// appendNumbered appends a snapshot, for which there is space, with the number of its key. It only changes
// the length of b.frames, because storing the pointer as well would need a write barrier of the garbage
// collector.
func (b *buffer) appendNumbered(s *Snapshot, number uint32) {
	duration, end, flags, weight := s.wireFields()
	b.frames = b.frames[:len(wire.AppendNumbered(b.frames, number, duration, end, flags, weight))]
}

// appendWhole appends a snapshot, for which there is space, with its whole encoded key.
func (b *buffer) appendWhole(s *Snapshot, raw []byte) {
	duration, end, flags, weight := s.wireFields()
	b.frames = wire.AppendWhole(b.frames, raw, duration, end, flags, weight)
}

// seal prepares the buffer for writing.
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

// messages iterates over the messages of a sealed buffer and their numbers of spans, which is 0 for a
// define message.
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

// spansIn returns the number of spans in the messages that are completely within the first n bytes.
func (b *buffer) spansIn(n int) (spans int) {
	for message, count := range b.messages() {
		if n -= len(message); n < 0 {
			break
		}
		spans += count
	}
	return spans
}

// retain removes the messages with spans for which keep returns false. A message that defines keys remains if a message
// with spans that follows it remains. keep is called for each message with spans, with their number.
func (b *buffer) retain(keep func(spans int) bool) {
	var definitions []byte // last message that defines keys, unless it was copied already
	end := b.head
	b.spans = 0
	for message, spans := range b.messages() {
		definesKeys := spans == 0
		switch {
		case definesKeys:
			definitions = message
		case keep(spans):
			end += copy(b.memory[end:], definitions)
			end += copy(b.memory[end:], message)
			b.spans += spans
			definitions = nil
		}
	}
	b.end = end
}

// join appends the messages of another sealed buffer. It returns false, and appends nothing, if they do not
// fit.
func (b *buffer) join(other *buffer) bool {
	if len(b.memory)-b.end < len(other.bytes()) {
		return false
	}
	b.end += copy(b.memory[b.end:], other.bytes())
	b.spans += other.spans
	b.upTo = other.upTo
	return true
}

// messageSpans returns the number of spans in a message that this package has encoded.
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

// pool contains all buffers. Publishers take free buffers and seal full ones without a lock, so a publisher
// that the scheduler interrupts blocks no other.
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

// take returns an empty buffer, or nil if none is free. It prefers the buffer that was freed last, so
// memory that is not needed is never touched.
func (p *pool) take() *buffer {
	b := p.free.pop(p.buffers)
	if b != nil {
		b.empty()
	}
	return b
}

// give makes a buffer free.
func (p *pool) give(b *buffer) { p.free.push(b) }

// seal seals a buffer and passes it to the sender.
func (p *pool) seal(b *buffer) {
	b.seal()
	p.sealed.push(b)
}

// appendSealed removes all sealed buffers from the pool and appends them to dst, oldest first.
func (p *pool) appendSealed(dst []*buffer) []*buffer {
	start := len(dst)
	for b := p.sealed.pop(p.buffers); b != nil; b = p.sealed.pop(p.buffers) {
		dst = append(dst, b)
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

// changed returns the value of stack.head after one more change, with a new top buffer.
func changed(head uint64, top uint32) uint64 {
	changes := head>>32 + 1
	return changes<<32 | uint64(top)
}
