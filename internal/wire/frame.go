package wire

import (
	"encoding/binary"

	"github.com/spanstatsd/spanstatsd/internal/msgpack"
)

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
