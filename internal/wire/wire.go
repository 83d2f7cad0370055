// Package wire implements the native protocol between clients and the daemon: framing, encoding and
// decoding of all messages. docs/protocol.md specifies the protocol for authors of clients in any language,
// and testdata/vectors.json contains test vectors.
//
// It works on byte slices only: it opens no sockets, reads no clock, starts no goroutines, and keeps no
// state between calls. Functions can be called concurrently unless they share a buffer or a walker.
//
// Control messages (hello, welcome, features, lost, flush, bye) are sent a few times per connection. They
// are validated as a whole, then decoded field by field into structs. Data messages (spans, define) are
// sent all the time. They are appended to the caller's buffer and decoded there without allocating, by
// walkers that return slices of the buffer. Package msgpack reads the values of both.
//
// # Limits
//
// Decoding a message is bounded by its length: a count is accepted only if that many elements fit into the
// remaining bytes, control messages are nested at most eight levels deep, a key has at most 256 tags per
// list, and a list in a control message has at most 1024 elements. A violation is an error that wraps
// ErrMalformed. No input causes a panic.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/spanstatsd/spanstatsd/internal/wire/msgpack"
)

const (
	// Version is the only protocol version so far.
	Version = 1
	// HeaderLen is the length of the frame header, which contains the length of the message.
	HeaderLen = 4
	// DefaultMaxFrame is the maximum length of a message that a daemon accepts by default, and of any
	// message that a daemon sends.
	DefaultMaxFrame = 1 << 20
	// MinMaxFrame is the minimum of Welcome.MaxFrame, so that a client can allocate its buffers before it
	// connects.
	MinMaxFrame = 65536
	// MinMaxBatch is the minimum of Welcome.MaxBatch.
	MinMaxBatch = 256
	// MinMaxKeys is the minimum of Welcome.MaxKeys.
	MinMaxKeys = 1024
	// MinMaxKeyBytes is the minimum of Welcome.MaxKeyBytes.
	MinMaxKeyBytes = 128 << 10
	// SendBuffer is the socket send buffer that a client requests from the kernel. With the small default
	// of Linux, client and daemon wake each other up much more often.
	SendBuffer = 256 << 10
)

// ErrMalformed is wrapped by all errors of decoders and walkers.
var ErrMalformed = errors.New("malformed message")

// Type is the type of a message, as encoded in the protocol.
type Type uint8

const (
	TypeHello    Type = 1 // client to daemon; the first message
	TypeWelcome  Type = 2 // daemon to client; the response to hello
	TypeFeatures Type = 3 // daemon to client; whenever the features change
	TypeDefine   Type = 4 // client to daemon
	TypeSpans    Type = 5 // client to daemon
	TypeLost     Type = 6 // client to daemon
	TypeFlush    Type = 7 // client to daemon, and the response to it
	TypeBye      Type = 8 // either direction; the last message
)

var typeNames = [...]string{
	TypeHello: "hello", TypeWelcome: "welcome", TypeFeatures: "features", TypeDefine: "define",
	TypeSpans: "spans", TypeLost: "lost", TypeFlush: "flush", TypeBye: "bye",
}

// String returns the name of the type in docs/protocol.md.
func (t Type) String() string {
	if t.isKnown() {
		return typeNames[t]
	}
	return fmt.Sprintf("type %d", uint8(t))
}

func (t Type) isKnown() bool { return TypeHello <= t && t <= TypeBye }

// describeByte describes the byte b[pos] for an error message.
func describeByte(b []byte, pos int) string {
	if pos >= len(b) {
		return "the end of the message"
	}
	return fmt.Sprintf("lead byte 0x%02x with %d bytes after it", b[pos], len(b)-pos-1)
}

// malformedError is the type of all errors of decoders and walkers.
type malformedError struct {
	message   string
	undecoded int // number of bytes from the error to the end of the message or key
}

func (e *malformedError) Error() string { return e.message + ": " + ErrMalformed.Error() }
func (e *malformedError) Unwrap() error { return ErrMalformed }

// UndecodedBytes returns how many bytes were left when a decoder of this package failed with err. It returns false
// if err does not come from a decoder of this package.
func UndecodedBytes(err error) (count int, ok bool) {
	var malformed *malformedError
	if !errors.As(err, &malformed) {
		return 0, false
	}
	return malformed.undecoded, true
}

// malformed returns an error that wraps ErrMalformed. operation is the operation that failed, undecoded is the result of
// UndecodedBytes for the error, and the formatted text states the bytes that were expected.
func malformed(operation string, undecoded int, format string, args ...any) error {
	return &malformedError{operation + ": " + fmt.Sprintf(format, args...), undecoded}
}

// A message is an array of two elements, its type and its body. beginFrame writes the array header and the type in one
// byte each, so the body starts at a fixed offset.
const (
	frameBody     = HeaderLen + 2
	listHeaderLen = 5 // array header that can contain any count, which endList writes
)

// FrameLength returns the length of the message that follows a frame header of HeaderLen bytes.
func FrameLength(header []byte) uint32 {
	return binary.BigEndian.Uint32(header)
}

// Split splits a message, a frame without its header, into the type and the body. body shares the memory of message
// and has not been validated. Split returns an error if the type is unknown or the body is empty.
func Split(message []byte) (t Type, body []byte, err error) {
	const operation = "split message"
	r := msgpack.NewReader(message)
	if r.Array() != 2 {
		r.Fail() // makes r.Integer fail at this position, too
	}
	typeStart := r.Pos()
	number, isNegative := r.Integer()
	if r.Failed() {
		undecoded := len(message) - r.Pos()
		return 0, nil, malformed(operation, undecoded, "expected an array of two, a number as the "+
			"type and the body, found %s", describeByte(message, r.Pos()))
	}
	isKnown := !isNegative && number >= uint64(TypeHello) && number <= uint64(TypeBye)
	if !isKnown {
		undecoded := len(message) - typeStart
		return 0, nil, malformed(operation, undecoded, "unknown message type %d, version %d has 1 to %d",
			int64(number), Version, TypeBye)
	}
	t = Type(number)
	body = message[r.Pos():]
	if len(body) == 0 {
		return 0, nil, malformed(operation, 0, "%s has no body", t)
	}
	return t, body, nil
}

// beginFrame appends the header of a frame, whose length endFrame writes, and the start of the message.
func beginFrame(dst []byte, t Type) []byte {
	return append(dst, 0, 0, 0, 0, msgpack.FixArray|2, byte(t))
}

// endFrame writes the length of the frame that starts at dst[start].
func endFrame(dst []byte, start int) {
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start-HeaderLen))
}

// beginList begins a frame whose body is an array. endList writes the number of its elements.
func beginList(dst []byte, t Type) []byte {
	return append(beginFrame(dst, t), msgpack.Array32, 0, 0, 0, 0)
}

// endList ends a frame that starts at dst[start] and contains count elements.
func endList(dst []byte, start, count int) {
	binary.BigEndian.PutUint32(dst[start+frameBody+1:start+frameBody+listHeaderLen], uint32(count))
	endFrame(dst, start)
}
