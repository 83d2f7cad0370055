package wire

import (
	"math"

	"github.com/spanstatsd/spanstatsd/internal/msgpack"
)

// minDefinition is the fewest bytes that a definition can have: an array header,
// a number and an empty byte string.
const minDefinition = 4

// BeginDefine begins a define message: append its definitions, then call
// EndDefine with the length that dst had before.
func BeginDefine(dst []byte) []byte { return beginCounted(dst, TypeDefine) }

// EndDefine finishes the message that begins at dst[start] and holds count
// definitions.
func EndDefine(dst []byte, start, count int) { endCounted(dst, start, count) }

// AppendDefinition appends that number stands for the key with these bytes.
func AppendDefinition(dst []byte, number uint32, key []byte) []byte {
	return appendBin(appendUint(append(dst, msgpack.FixArray|2), uint64(number)), key)
}

// DefineWalker walks the definitions of one message in place.
type DefineWalker struct {
	rest  []byte
	left  int
	count int
	err   error
}

// WalkDefine begins to walk the body of a define message.
func WalkDefine(body []byte) (DefineWalker, error) {
	count, rest, err := openArray("walk define", body, minDefinition)
	return DefineWalker{rest: rest, left: count, count: count}, err
}

// Err is why the walk ended before the message did, or nil.
func (w *DefineWalker) Err() error { return w.err }

// Left is how many bytes of the message are to come.
func (w *DefineWalker) Left() int { return len(w.rest) }

// Next returns the next definition and whether there was one. The key aliases
// the message. After false, Err tells the end from a fault.
func (w *DefineWalker) Next() (number uint32, key []byte, ok bool) {
	if w.left == 0 {
		if len(w.rest) != 0 && w.err == nil {
			w.err = malformed("walk define", len(w.rest), "%d bytes follow the last of %d definitions",
				len(w.rest), w.count)
		}
		return 0, nil, false
	}
	r := msgpack.NewReader(w.rest)
	if r.Array() != 2 {
		r.Fail()
	}
	number = uint32(r.Uint(math.MaxUint32))
	key = r.Bin().Of(w.rest)
	if r.Failed() {
		w.err = malformed("walk define", len(w.rest)-r.At(), "definition %d of %d: expected an array of a "+
			"number below 2^32 and a byte string, found %s",
			w.count-w.left, w.count, found(w.rest, r.At()))
		w.rest, w.left = nil, 0
		return 0, nil, false
	}
	w.rest = w.rest[r.At():]
	w.left--
	return number, key, true
}
