// Package wire is the protocol between a tracer and the daemon: how a message
// lies in a frame, and what each message means. docs/protocol.md is the same in
// words, for the author of a tracer in any language, and testdata/vectors.json
// is the same in bytes.
//
// It owns bytes and nothing else. It opens no socket, reads no clock, starts no
// goroutine and keeps no state between two calls, so every function may be
// called from any goroutine as long as no two share a buffer or a walker.
//
// There are two ways through it. What comes once a connection (hello, welcome,
// features, lost, flush, bye) is cold: it is read field by field into values of its
// own, behind a look at all of it, which refuses what nests too deep. What comes once
// a span is hot: spans, definitions and keys are appended to and walked in the caller's
// buffer, without allocating. A walker lends out slices of that buffer; they are good
// until it is reused. Package msgpack reads the values of both.
//
// Everything that is read is bounded by the bytes that were read: a count is
// believed only when that many elements could still follow, nesting ends at
// eight, a key holds at most 256 tags a list, a cold list 1024 elements. What
// breaks a rule is an error that wraps ErrMalformed; nothing here panics,
// whatever the bytes are.
package wire

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/spanstatsd/spanstatsd/internal/wire/msgpack"
)

const (
	// Version is the protocol's only version so far.
	Version = 1
	// HeaderLen is the length of the frame length that precedes each message.
	HeaderLen = 4
	// DefaultMaxFrame is the longest message that a daemon takes unless it was
	// told otherwise, and the longest that a daemon ever sends.
	DefaultMaxFrame = 1 << 20
	// MinMaxFrame is the least that a daemon may announce as its longest
	// message, so that a tracer can size its buffers before it knows.
	MinMaxFrame = 65536
	// MinMaxBatch is the same for the snapshots of one batch.
	MinMaxBatch = 256
	// MinMaxKeys is the same for the numbers that a connection may define.
	MinMaxKeys = 1024
	// MinMaxKeyBytes is the same for what the keys that it gives numbers to may cost.
	MinMaxKeyBytes = 128 << 10
	// SendBuffer is what a tracer asks of the kernel for its end of the socket. With
	// the little that Linux gives unasked, the two ends wake each other all the time.
	SendBuffer = 256 << 10
)

// ErrMalformed is what every error of a decoder or a walker wraps.
var ErrMalformed = errors.New("malformed message")

// Type is what a message is. Its number is what stands on the wire.
type Type uint8

const (
	TypeHello    Type = 1 // tracer to daemon, first of all
	TypeWelcome  Type = 2 // daemon to tracer, the answer to hello
	TypeFeatures Type = 3 // daemon to tracer, whenever they change
	TypeDefine   Type = 4 // tracer to daemon
	TypeSpans    Type = 5 // tracer to daemon
	TypeLost     Type = 6 // tracer to daemon
	TypeFlush    Type = 7 // tracer to daemon, and its answer back
	TypeBye      Type = 8 // either way, last of all
)

var typeNames = [...]string{
	TypeHello: "hello", TypeWelcome: "welcome", TypeFeatures: "features", TypeDefine: "define",
	TypeSpans: "spans", TypeLost: "lost", TypeFlush: "flush", TypeBye: "bye",
}

// String is the type's name in the documentation.
func (t Type) String() string {
	if t.known() {
		return typeNames[t]
	}
	return fmt.Sprintf("type %d", uint8(t))
}

func (t Type) known() bool { return TypeHello <= t && t <= TypeBye }

// found says in words what stands at a place of b, for an error.
func found(b []byte, at int) string {
	if at >= len(b) {
		return "the end of the message"
	}
	return fmt.Sprintf("lead byte 0x%02x with %d bytes after it", b[at], len(b)-at-1)
}

// malformedError is every error of a decoder or a walker.
type malformedError struct {
	said string
	left int
}

func (e *malformedError) Error() string { return e.said + ": " + ErrMalformed.Error() }
func (e *malformedError) Unwrap() error { return ErrMalformed }

// Left is how many bytes there were from the fault to the end of what was read, a
// message or a key. It reports false for an error that is not about bytes.
func Left(err error) (left int, ok bool) {
	var e *malformedError
	if !errors.As(err, &e) {
		return 0, false
	}
	return e.left, true
}

// malformed is an error that wraps ErrMalformed. It says where the reading stopped,
// by how many bytes were left there, and what the sender should have written.
func malformed(doing string, left int, format string, args ...any) error {
	return &malformedError{doing + ": " + fmt.Sprintf(format, args...), left}
}

// A message is an array of two, its type and its body. beginFrame writes both
// headers in their shortest form, so a body starts at a fixed offset.
const (
	frameBody  = HeaderLen + 2
	countedLen = 5 // an array header with room for any count, patched at the end
)

// FrameLength is the length of the message that follows this frame header, whose
// first HeaderLen bytes it reads.
func FrameLength(header []byte) uint32 {
	return binary.BigEndian.Uint32(header)
}

// Split parts a message, which is a frame without its length, into its type and
// its body. The body aliases the message and has not been looked at yet.
func Split(message []byte) (t Type, body []byte, err error) {
	r := msgpack.NewReader(message)
	if r.Array() != 2 {
		r.Fail()
	}
	left := r.Left()
	number, isNegative := r.Integer()
	if r.Failed() {
		return 0, nil, malformed("split message", len(message)-r.At(),
			"expected an array of two, a number as the type and the body, found %s", found(message, r.At()))
	}
	if isNegative || number > uint64(TypeBye) || !Type(number).known() {
		return 0, nil, malformed("split message", left, "unknown message type %d, version %d has 1 to %d",
			int64(number), Version, TypeBye)
	}
	if r.Left() == 0 {
		return 0, nil, malformed("split message", 0, "%s has no body", Type(number))
	}
	return Type(number), message[r.At():], nil
}

func beginFrame(dst []byte, t Type) []byte {
	return append(dst, 0, 0, 0, 0, msgpack.FixArray|2, byte(t))
}

// endFrame writes the length of the frame that begins at start.
func endFrame(dst []byte, start int) {
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start-HeaderLen))
}

// beginCounted begins a frame whose body is an array of a length that is not
// known yet.
func beginCounted(dst []byte, t Type) []byte {
	return append(beginFrame(dst, t), msgpack.Array32, 0, 0, 0, 0)
}

func endCounted(dst []byte, start, count int) {
	binary.BigEndian.PutUint32(dst[start+frameBody+1:start+frameBody+countedLen], uint32(count))
	endFrame(dst, start)
}
