package wire

// SpansWalker walks the snapshots of one batch in place: Commons those of the one shape
// that nearly every snapshot has, many at a time, and Next any one, of every width.
type SpansWalker struct {
	body  []byte
	at    int // of the next snapshot
	left  int
	count int
	err   error
}

// WalkSpans begins to walk the body of a spans message.
func WalkSpans(body []byte) (SpansWalker, error) {
	count, rest, err := openArray("walk spans", body, minSnapshot)
	return SpansWalker{body: rest, left: count, count: count}, err
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
	n, expected := readSnapshot(w.body[w.at:], s)
	if w.at += n; expected != "" {
		return w.fail(expected)
	}
	w.left--
	return true
}

// Left is how many snapshots are to come.
func (w *SpansWalker) Left() int { return w.left }

// stop ends the walk after the last snapshot, where the message must end too.
func (w *SpansWalker) stop() bool {
	if rest := len(w.body) - w.at; rest != 0 && w.err == nil {
		w.err = malformed("walk spans", "%d bytes follow the last of %d snapshots", rest, w.count)
	}
	return false
}

// fail ends the walk within a snapshot, behind what of it was right.
func (w *SpansWalker) fail(expected string) bool {
	w.err = malformed("walk spans", "snapshot %d of %d: expected %s, found %s", w.count-w.left, w.count, expected, found(w.body[w.at:]))
	w.at, w.left = len(w.body), 0
	return false
}
