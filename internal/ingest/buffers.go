package ingest

import (
	"sync/atomic"
	"time"
)

// buffers bounds what the buffers of large frames take, of all connections together. A
// frame that fits the buffer every connection has needs none of it, so a tracer that
// keeps its frames under 64 KiB, as the Go client does, never meets another one here.
type buffers struct {
	max     int64
	used    atomic.Int64
	waits   atomic.Uint64   // frames that had to wait
	stopped <-chan struct{} // closed when nothing is waited for any more
}

// bufferPause is how long a frame waits before it asks again. Those that have
// their room need only be read, so it is short.
const bufferPause = time.Millisecond

// take takes room for n bytes, waiting for as long as a frame may take. A frame
// takes all that it needs at once, so whoever has some can be completed.
func (b *buffers) take(n int, within time.Duration) bool {
	if b.try(int64(n)) {
		return true
	}
	b.waits.Add(1)
	for deadline := time.Now().Add(within); time.Now().Before(deadline); {
		select {
		case <-time.After(bufferPause):
		case <-b.stopped:
			// What is left in the sockets now is little, and nothing follows it.
			b.used.Add(int64(n))
			return true
		}
		if b.try(int64(n)) {
			return true
		}
	}
	return false
}

func (b *buffers) try(n int64) bool {
	if b.used.Add(n) <= b.max {
		return true
	}
	b.used.Add(-n)
	return false
}

func (b *buffers) give(n int) { b.used.Add(-int64(n)) }
