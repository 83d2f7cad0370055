package client

import (
	"iter"
	"sync/atomic"

	"github.com/spanstatsd/spanstatsd/internal/wire"
)

const (
	bufferBytes = 64 << 10
	defineRoom  = 16 << 10
	// messageSpans is the maximum number of snapshots per message, which every daemon accepts.
	messageSpans = wire.MinMaxBatch
	// Upper bounds of the encoded length of a snapshot without its key, of a definition without its key, and of the
	// header of a message.
	maxBytesWithoutKey = 64
	definitionRoom     = 16
	headerRoom         = 16
)

// buffer is a fixed piece of memory with two sections. The first bytes contain at most one message, which defines
// keys: it assigns a number to each. The messages with spans begin after a fixed boundary, and refer to keys by number.
// When the buffer is sealed, the first message is moved directly before the others, so that one write sends all.
//
// The key numbers of a buffer begin at 0. A buffer does not depend on other buffers, so it can be sent on any
// connection.
type buffer struct {
	memory       []byte
	definitions  []byte // message that defines keys; empty if there are none
	keyCount     int    // number of keys in definitions
	spanMessages []byte // messages with spans
	openMessage  openMessage

	// Range of all messages in memory, after the buffer was sealed.
	sealedStart, sealedEnd int

	spanCount      int
	lastSpanNumber uint64        // number of the last span among all spans of the connection; set when the buffer is sent
	next           *buffer       // next element of a bufferList
	below          atomic.Uint32 // for a buffer in a stack: index plus 1 of the buffer below it
	index          uint32        // index in pool.buffers
}

// openMessage is the last message of buffer.spanMessages, to which snapshots can be appended.
type openMessage struct {
	start     int // position in spanMessages
	spanCount int // 0 if there is no message
}

// bufferState is a state of a buffer that can be restored.
type bufferState struct {
	messagesLength int // length of buffer.spanMessages
	openMessage    openMessage
	spanCount      int
}

// reset removes everything from the buffer.
func (b *buffer) reset() {
	b.definitions = b.memory[:0:defineRoom]          // empty, at the start of the first section
	b.spanMessages = b.memory[defineRoom:defineRoom] // empty, at the start of the second section
	b.keyCount = 0
	b.openMessage = openMessage{}
	b.spanCount = 0
	b.next = nil
}

// state returns the current state of the buffer, for restore.
func (b *buffer) state() bufferState {
	return bufferState{messagesLength: len(b.spanMessages), openMessage: b.openMessage, spanCount: b.spanCount}
}

// restore removes the snapshots that were appended after the given state. Keys that were defined since then remain,
// because unused definitions do no harm.
func (b *buffer) restore(s bufferState) {
	b.spanMessages = b.spanMessages[:s.messagesLength]
	b.openMessage = s.openMessage
	b.spanCount = s.spanCount
	b.updateMessageHeader()
}

// beginMessage starts a message with spans.
func (b *buffer) beginMessage() {
	b.openMessage = openMessage{start: len(b.spanMessages)}
	b.spanMessages = wire.BeginSpans(b.spanMessages)
}

// countAppended counts the snapshots that were appended to the open message.
func (b *buffer) countAppended(snapshots int) {
	b.openMessage.spanCount += snapshots
	b.spanCount += snapshots
	b.updateMessageHeader()
}

// updateMessageHeader writes the length and the number of snapshots of the open message into its header.
func (b *buffer) updateMessageHeader() {
	if b.openMessage.spanCount > 0 {
		wire.EndSpans(b.spanMessages, b.openMessage.start, b.openMessage.spanCount)
	}
}

// canExtendMessage reports whether the open message exists and can contain this many further snapshots.
func (b *buffer) canExtendMessage(snapshots int) bool {
	return b.openMessage.spanCount > 0 && b.openMessage.spanCount+snapshots <= messageSpans
}

// fits reports whether there is space for this many bytes of snapshots.
func (b *buffer) fits(bytes int) bool { return bytes <= cap(b.spanMessages)-len(b.spanMessages) }

// fitsKey reports whether there is space to define a key whose encoding has the given length.
func (b *buffer) fitsKey(length int) bool {
	neededBytes := headerRoom + definitionRoom + length
	freeBytes := cap(b.definitions) - len(b.definitions)
	return b.keyCount < maxKeys && neededBytes <= freeBytes
}

// defineKey assigns the next free number to an encoded key, and appends the pair to the buffer, so that spans can
// refer to the key by the number. The caller must have checked that the pair fits.
func (b *buffer) defineKey(encodedKey []byte) (number uint32) {
	if b.keyCount == 0 {
		b.definitions = wire.BeginDefine(b.definitions)
	}
	number = uint32(b.keyCount)
	b.definitions = wire.AppendDefinition(b.definitions, number, encodedKey)
	b.keyCount++
	return number
}

// encodeKey encodes a key into unused memory of the buffer, after space for the other fields of a snapshot. It appends
// nothing: the result can then be passed to defineKey or appendWithKey.
func (b *buffer) encodeKey(key *Key) []byte {
	start := len(b.spanMessages) + maxBytesWithoutKey
	unused := b.spanMessages[start:start:cap(b.spanMessages)]
	return wire.AppendKey(unused, key)
}

// appendWithNumber appends a snapshot that refers to its key by number. The caller has checked that it fits.
func (b *buffer) appendWithNumber(s *Snapshot, keyNumber uint32) {
	duration, end, flags, weight := s.wireFields()
	extended := wire.AppendNumbered(b.spanMessages, keyNumber, duration, end, flags, weight)
	// Only the length changes: storing the pointer, too, would need a write barrier of the garbage collector.
	b.spanMessages = b.spanMessages[:len(extended)]
}

// appendWithKey appends a snapshot that contains its encoded key. The caller has checked that it fits.
func (b *buffer) appendWithKey(s *Snapshot, encodedKey []byte) {
	duration, end, flags, weight := s.wireFields()
	b.spanMessages = wire.AppendWhole(b.spanMessages, encodedKey, duration, end, flags, weight)
}

// seal prepares the buffer for sending: it moves the message that defines keys directly before the messages with spans.
func (b *buffer) seal() {
	if b.keyCount > 0 {
		const messageStart = 0
		wire.EndDefine(b.definitions, messageStart, b.keyCount)
	}
	b.sealedStart = defineRoom - len(b.definitions)
	b.sealedEnd = defineRoom + len(b.spanMessages)
	copy(b.memory[b.sealedStart:], b.definitions)
}

// bytes returns all messages of a sealed buffer.
func (b *buffer) bytes() []byte { return b.memory[b.sealedStart:b.sealedEnd] }

// messages iterates over the messages of b, which must be sealed (complete). Each pair is a message with its length
// header, and the number of spans in it. The number is 0 for a message that only defines keys.
func (b *buffer) messages() iter.Seq2[[]byte, int] {
	return func(yield func(message []byte, spanCount int) bool) {
		unread := b.bytes()
		for len(unread) > 0 {
			length := wire.HeaderLen + int(wire.FrameLength(unread))
			message := unread[:length]
			unread = unread[length:]
			if !yield(message, countSpans(message)) {
				return
			}
		}
	}
}

// countSpans returns the number of spans in a message of a buffer.
func countSpans(message []byte) int {
	kind, body, err := wire.Split(message[wire.HeaderLen:])
	if err != nil {
		panic("BUG: client buffer holds a malformed message: " + err.Error())
	}
	if kind != wire.TypeSpans {
		return 0
	}
	walker, err := wire.WalkSpans(body)
	if err != nil {
		panic("BUG: client buffer holds a malformed batch: " + err.Error())
	}
	return walker.Len()
}

// countWrittenSpans returns the number of spans in the first bytesWritten bytes of b, which must be sealed
// (complete). Spans of a message that was only written in part are not counted.
func (b *buffer) countWrittenSpans(bytesWritten int) (spans int) {
	messageEnd := 0
	for message, spanCount := range b.messages() {
		messageEnd += len(message)
		if messageEnd > bytesWritten {
			break
		}
		spans += spanCount
	}
	return spans
}

// filterMessages removes the messages with spans for which shouldKeep returns false. It calls shouldKeep once for each
// of them, in order, with its number of spans. It keeps the definitions of keys that the kept spans use. b must be
// complete (sealed).
func (b *buffer) filterMessages(shouldKeep func(spanCount int) bool) {
	var uncopiedDefinitions []byte // defines the keys of the next spans; copied before the first of them that is kept
	keptEnd := b.sealedStart       // end of the kept messages, which are moved to the front of the same memory
	keptSpans := 0
	for message, spanCount := range b.messages() {
		definesKeys := spanCount == 0
		if definesKeys {
			uncopiedDefinitions = message // earlier definitions are not used any more
			continue
		}
		if !shouldKeep(spanCount) {
			continue
		}
		keptEnd += copy(b.memory[keptEnd:], uncopiedDefinitions)
		uncopiedDefinitions = nil
		keptEnd += copy(b.memory[keptEnd:], message)
		keptSpans += spanCount
	}
	b.sealedEnd = keptEnd
	b.spanCount = keptSpans
}

// appendMessages appends all messages of other to b. Both buffers must be sealed (complete). If the messages do not
// fit, appendMessages changes nothing and returns false.
func (b *buffer) appendMessages(other *buffer) bool {
	messages := other.bytes()
	if len(messages) > len(b.memory)-b.sealedEnd {
		return false
	}
	copy(b.memory[b.sealedEnd:], messages)
	b.sealedEnd += len(messages)
	b.spanCount += other.spanCount
	b.lastSpanNumber = other.lastSpanNumber
	return true
}
