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
	// frameSpans is the most snapshots of one message: what every daemon takes.
	frameSpans = wire.MinMaxBatch
	// snapshotRoom is more than a snapshot has besides its key; definitionRoom is
	// the same of a definition; headerRoom that of a message.
	snapshotRoom   = 64
	definitionRoom = 16
	headerRoom     = 16
)

// buffer is a fixed piece of memory with two sections. Definitions grow from its
// start as one message, spans messages from the fixed boundary on. When it is
// sealed the definitions move up against the messages, so that one write sends
// both.
type buffer struct {
	memory      []byte
	definitions []byte // the define message, empty without keys
	keys        int
	frames      []byte // spans messages, back to back
	open        mark   // the last of them, which still takes snapshots

	head, end int // of what was sealed, in memory

	spans int
	upTo  uint64        // of a kept buffer: its last span, by its number on the connection
	next  *buffer       // in the chain of a batch that fills several
	below atomic.Uint32 // the buffer under it in a stack
	index uint32
}

// mark is a point that a buffer can be taken back to. Definitions stay: they
// hold no snapshot, and say the truth whether they are used or not.
type mark struct {
	length int // of frames
	start  int // of the last message
	count  int // its snapshots; 0 when there is none
	spans  int // of the buffer
}

// empty makes the buffer ready to be filled.
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

// rewind takes back all that was appended since the mark.
func (b *buffer) rewind(m mark) {
	b.frames, b.open, b.spans = b.frames[:m.length], m, m.spans
	b.finishMessage()
}

// finishMessage writes the length and the count of the last message. More may
// still be appended to it, and then it is finished anew.
func (b *buffer) finishMessage() {
	if b.open.count > 0 {
		wire.EndSpans(b.frames, b.open.start, b.open.count)
	}
}

// fits reports whether n more bytes have room among the messages.
func (b *buffer) fits(n int) bool { return n <= cap(b.frames)-len(b.frames) }

// appendNumbered appends a snapshot for which there is room. Nothing moves, so
// only the length is stored: a pointer would ask the collector first.
func (b *buffer) appendNumbered(s *Snapshot, number uint32) {
	duration, end, flags, weight := s.facts()
	b.frames = b.frames[:len(wire.AppendNumbered(b.frames, number, duration, end, flags, weight))]
}

// appendWhole is the same for a key that has no number.
func (b *buffer) appendWhole(s *Snapshot, raw []byte) {
	duration, end, flags, weight := s.facts()
	b.frames = wire.AppendWhole(b.frames, raw, duration, end, flags, weight)
}

// seal makes the buffer what is to be written.
func (b *buffer) seal() {
	if b.keys > 0 {
		wire.EndDefine(b.definitions, 0, b.keys)
	}
	b.head = defineRoom - len(b.definitions)
	b.end = defineRoom + len(b.frames)
	copy(b.memory[b.head:], b.definitions)
}

// bytes are the messages of a sealed buffer.
func (b *buffer) bytes() []byte { return b.memory[b.head:b.end] }

// messages goes through them. Those that define have no spans.
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

// taken is how many spans lie in messages that the socket took to their last byte, where it took
// the first n bytes.
func (b *buffer) taken(n int) (spans int) {
	for message, count := range b.messages() {
		if n -= len(message); n < 0 {
			break
		}
		spans += count
	}
	return spans
}

// retain leaves those messages of spans that are wanted, in their order, each behind the definitions
// that it needs. What it is asked is how many spans the next message has.
func (b *buffer) retain(isWanted func(spans int) bool) {
	var definitions []byte // that what is left has not yet
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

// join appends the messages of another buffer, if there is room.
func (b *buffer) join(other *buffer) bool {
	if len(b.memory)-b.end < len(other.bytes()) {
		return false
	}
	b.end += copy(b.memory[b.end:], other.bytes())
	b.spans, b.upTo = b.spans+other.spans, other.upTo
	return true
}

// messageSpans is how many spans a message of ours holds.
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
