package wire

import "github.com/spanstatsd/spanstatsd/internal/msgpack"

// SpansWalker walks the snapshots of one batch in place.
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
	r := msgpack.NewReader(body)
	count = r.Array()
	if r.Failed() || count > r.Left()/minLen {
		return 0, nil, malformed(doing, "expected an array of no more elements than fit, each of at least %d bytes, found %s", minLen, found(body, 0))
	}
	return count, body[r.At():], nil
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
	if n := readCommon(w.body[w.at:], s); n != 0 {
		w.at += n
	} else {
		r := msgpack.NewReaderAt(w.body, w.at)
		expected := readSnapshot(&r, w.body, s)
		if w.at = r.At(); r.Failed() {
			return w.fail(expected)
		}
	}
	w.left--
	return true
}

// stop ends the walk after the last snapshot, where the message must end too.
func (w *SpansWalker) stop() bool {
	if rest := len(w.body) - w.at; rest != 0 && w.err == nil {
		w.err = malformed("walk spans", "%d bytes follow the last of %d snapshots", rest, w.count)
	}
	return false
}

// fail ends the walk within a snapshot, behind what of it was right.
func (w *SpansWalker) fail(expected string) bool {
	w.err = malformed("walk spans", "snapshot %d of %d: expected %s, found %s", w.count-w.left, w.count, expected, found(w.body, w.at))
	w.at, w.left = len(w.body), 0
	return false
}
