package ingest

import (
	"sync/atomic"
	"time"
)

// space bounds what the buffers of large frames take, of all connections together. A
// frame that fits the buffer every connection has needs none of it, so a tracer that
// keeps its frames under 64 KiB, as the Go client does, never meets another one here.
// What is free of it is lent to busy connections, see wide.
type space struct {
	max   int64
	loans int64 // at most; see lend
	used  atomic.Int64
	lent  atomic.Int64    // of used
	waits atomic.Uint64   // frames that had to wait
	now   atomic.Int64    // of them, those that do
	over  <-chan struct{} // closed when nothing is waited for any more
}

// spacePause is how long a frame waits before it asks again. Those that have
// their room need only be read, so it is short.
const spacePause = time.Millisecond

// take takes room for n bytes, waiting for as long as a frame may take. A frame
// takes all that it needs at once, so whoever has some can be completed. What a frame
// that waits was lent before is no more than leaves room for the largest frame.
func (s *space) take(n int, within time.Duration) bool {
	if s.try(int64(n)) {
		return true
	}
	s.waits.Add(1)
	s.now.Add(1)
	defer s.now.Add(-1)
	pause := time.NewTicker(spacePause)
	defer pause.Stop()
	for deadline := time.Now().Add(within); time.Now().Before(deadline); {
		select {
		case <-pause.C:
		case <-s.over:
			// What is left in the sockets now is little, and nothing follows it.
			s.used.Add(int64(n))
			return true
		}
		if s.try(int64(n)) {
			return true
		}
	}
	return false
}

func (s *space) try(n int64) bool {
	if s.used.Add(n) <= s.max {
		return true
	}
	s.used.Add(-n)
	return false
}

func (s *space) give(n int) { s.used.Add(-int64(n)) }

// newSpace makes so much space, for frames up to a length. What is lent leaves half of
// it to large frames, and always one of them.
func newSpace(bytes, frame int, over <-chan struct{}) *space {
	return &space{max: int64(bytes), loans: int64(min(bytes/2, bytes-frame)), over: over}
}

// isSought says whether a frame waits for room.
func (s *space) isSought() bool { return s.now.Load() > 0 }

// lend takes room for n bytes that may stay taken for long, if there is some at once that
// nobody waits for.
func (s *space) lend(n int) bool {
	if s.isSought() {
		return false
	}
	if s.lent.Add(int64(n)) <= s.loans && s.try(int64(n)) {
		return true
	}
	s.lent.Add(-int64(n))
	return false
}

func (s *space) takeBack(n int) {
	s.give(n)
	s.lent.Add(-int64(n))
}
