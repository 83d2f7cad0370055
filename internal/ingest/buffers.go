package ingest

import (
	"sync/atomic"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/memory"
)

// buffers bounds what the buffers of large frames take, of all connections together. A
// frame that fits the buffer every connection has needs none of it, so a tracer that
// keeps its frames under 64 KiB, as the Go client does, never meets another one here.
type buffers struct {
	pool    *memory.Pool
	waits   atomic.Uint64   // frames that had to wait
	stopped <-chan struct{} // closed when nothing is waited for any more
}

// baseBuffer is what a connection reads into unless one frame needs more.
const baseBuffer = 64 << 10

// bufferPause is how long a frame waits before it asks again. Those that have
// their room need only be read, so it is short.
const bufferPause = time.Millisecond

// spareBuffers is how many buffers are kept for the next large frames, while there are
// connections: who sends one mostly sends more.
const spareBuffers = 4

// newBuffers have so many bytes together, and wait for them until stopped is closed.
func newBuffers(bytes int64, stopped <-chan struct{}) *buffers {
	return &buffers{pool: memory.NewPool(bytes, spareBuffers), stopped: stopped}
}

// take returns a buffer of at least n bytes, waiting for as long as a frame may take; nil
// where there was no room until then. A frame takes all that it needs at once, so whoever
// has some can be completed. Where there is room it takes somewhat more, at most what the
// largest frame needs, so that the buffer fits the next frame too.
func (b *buffers) take(n, most int, within time.Duration) *memory.Buffer {
	rounded := (n + baseBuffer - 1) / baseBuffer * baseBuffer
	if taken := b.pool.Take(max(n, min(rounded, most))); taken != nil {
		return taken
	}
	if taken := b.pool.Take(n); taken != nil {
		return taken
	}
	b.waits.Add(1)
	for deadline := time.Now().Add(within); time.Now().Before(deadline); {
		select {
		case <-time.After(bufferPause):
		case <-b.stopped:
			// Little is left in the sockets now, and nothing follows it.
			return b.pool.Insist(n)
		}
		if taken := b.pool.Take(n); taken != nil {
			return taken
		}
	}
	return nil
}
