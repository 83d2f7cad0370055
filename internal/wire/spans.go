package wire

// SpansWalker walks the snapshots of one batch in place. It runs once a span,
// so it tries the one shape that nearly every snapshot has, and leaves all other
// shapes to a reader that knows every width.
type SpansWalker struct {
	rest  []byte
	left  int
	count int
	err   error
}

// WalkSpans begins to walk the body of a spans message.
func WalkSpans(body []byte) (SpansWalker, error) {
	count, rest, err := openArray("walk spans", body, minSnapshot)
	return SpansWalker{rest: rest, left: count, count: count}, err
}

// openArray reads the header of a body that is an array, and believes its count
// only if that many elements of at least minLen bytes could follow.
func openArray(doing string, body []byte, minLen int) (count int, rest []byte, err error) {
	claimed, n := readArray(body)
	if n == 0 {
		return 0, nil, malformed(doing, "expected an array, found %s", found(body))
	}
	rest = body[n:]
	if uint64(claimed) > uint64(len(rest)/minLen) {
		return 0, nil, malformed(doing, "%d elements claimed in %d bytes, where each needs at least %d", claimed, len(rest), minLen)
	}
	return int(claimed), rest, nil
}

// Len is how many snapshots the batch claims to hold. That many could lie in its
// bytes; whether they do, the walk finds out.
func (w *SpansWalker) Len() int { return w.count }

// Err is why the walk ended before the batch did, or nil.
func (w *SpansWalker) Err() error { return w.err }

// Next reads the next snapshot into s and reports whether there was one. A key
// aliases the message. After false, Err tells the end from a fault.
func (w *SpansWalker) Next(s *Snapshot) bool {
	if w.left == 0 {
		return w.stop()
	}
	n := readCommon(w.rest, s)
	if n == 0 {
		var expected string
		if n, expected = readSnapshot(w.rest, s); expected != "" {
			return w.fail(expected, w.rest[n:])
		}
	}
	w.rest = w.rest[n:]
	w.left--
	return true
}

// Rest is the bytes that are not walked yet, for Common.
func (w *SpansWalker) Rest() []byte { return w.rest }

// Left is how many snapshots are to come.
func (w *SpansWalker) Left() int { return w.left }

// Passed goes on behind so many snapshots that Common has read, where it left this.
func (w *SpansWalker) Passed(snapshots int, rest []byte) {
	w.left -= snapshots
	w.rest = rest
}

// stop ends the walk after the last snapshot, where the message must end too.
func (w *SpansWalker) stop() bool {
	if len(w.rest) != 0 && w.err == nil {
		w.err = malformed("walk spans", "%d bytes follow the last of %d snapshots", len(w.rest), w.count)
	}
	return false
}

// fail ends the walk within a snapshot.
func (w *SpansWalker) fail(expected string, b []byte) bool {
	w.err = malformed("walk spans", "snapshot %d of %d: expected %s, found %s", w.count-w.left, w.count, expected, found(b))
	w.rest, w.left = nil, 0
	return false
}
