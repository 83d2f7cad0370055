package client

import (
	"sync/atomic"

	"github.com/spanstatsd/spanstatsd/internal/wire"
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

	// In a sealed buffer memory[head:end] is still to be written, and its first defined bytes
	// are the definitions.
	head, defined, end int

	spans int
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
	b.defined = len(b.definitions)
	b.head = defineRoom - b.defined
	b.end = defineRoom + len(b.frames)
	copy(b.memory[b.head:], b.definitions)
}

// bytes is what is still to be written of a sealed buffer.
func (b *buffer) bytes() []byte { return b.memory[b.head:b.end] }

// handOver notes that the socket took the first n of bytes. It returns how many
// spans lie in messages that were taken to their last byte; the definitions and
// what follows those messages stay, to be written to the next connection.
func (b *buffer) handOver(n int) (spans int) {
	first := b.head + b.defined
	rest, taken := first, b.head+n
	for rest < b.end {
		end := rest + wire.HeaderLen + int(wire.FrameLength(b.memory[rest:]))
		if end > taken {
			break
		}
		spans += messageSpans(b.memory[rest+wire.HeaderLen : end])
		rest = end
	}
	copy(b.memory[rest-b.defined:rest], b.memory[b.head:first])
	b.head = rest - b.defined
	b.spans -= spans
	return spans
}

// messageSpans is how many snapshots a message of ours holds.
func messageSpans(message []byte) int {
	_, body, err := wire.Split(message)
	if err != nil {
		panic("BUG: client buffer holds a malformed message: " + err.Error())
	}
	w, err := wire.WalkSpans(body)
	if err != nil {
		panic("BUG: client buffer holds a malformed batch: " + err.Error())
	}
	return w.Len()
}
