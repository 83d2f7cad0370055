package wire

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
	return appendBin(appendUint(append(dst, fixArray|2), uint64(number)), key)
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

// Next returns the next definition and whether there was one. The key aliases
// the message. After false, Err tells the end from a fault.
func (w *DefineWalker) Next() (number uint32, key []byte, ok bool) {
	if w.left == 0 {
		if len(w.rest) != 0 && w.err == nil {
			w.err = malformed("walk define", "%d bytes follow the last of %d definitions", len(w.rest), w.count)
		}
		return 0, nil, false
	}
	b := w.rest
	count, n := readArray(b)
	if n == 0 || count != 2 {
		return w.fail("array of two, a number and a key", b)
	}
	b = b[n:]
	if number, n = readKeyNumber(b); n == 0 {
		return w.fail("number below 2^32", b)
	}
	b = b[n:]
	if key, n = readBin(b); n == 0 {
		return w.fail("byte string as the key", b)
	}
	w.rest = b[n:]
	w.left--
	return number, key, true
}

func (w *DefineWalker) fail(expected string, b []byte) (uint32, []byte, bool) {
	w.err = malformed("walk define", "definition %d of %d: expected %s, found %s", w.count-w.left, w.count, expected, found(b))
	w.rest, w.left = nil, 0
	return 0, nil, false
}
