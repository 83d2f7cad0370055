package ingest

import (
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spanstatsd/spanstatsd/internal/running"
)

// connBytes is what a connection takes besides its publisher and its buffer.
const connBytes = int(unsafe.Sizeof(conn{}) + unsafe.Sizeof(frames{}))

const (
	// goroutineBytes is about what a connection's goroutine takes: its stack, which grows
	// to this on the longest way down, and the runtime's and the poller's part.
	goroutineBytes = 16 << 10
	// answerBytes is about what the answer to a flush takes while it is owed: a stack that
	// stays as small as it begins, and what it waits with.
	answerBytes = 3 << 10
)

// Memory is the most that ingest may come to use, of publishers that take so much each
// beside their keys: what its limits add up to. The kernel's socket buffers are the
// kernel's, though a control group counts them.
func (c *Config) Memory(publisherBytes int) []memory.Part {
	each := publisherBytes + connBytes + baseBuffer + goroutineBytes + maxOpenFlushes*answerBytes +
		running.Bytes(1) - running.Bytes(0)
	return []memory.Part{
		{Name: "connections", Bytes: int64(c.MaxConnections) * int64(each), Flag: "max-connections"},
		{Name: "buffers over 64 KiB", Bytes: int64(c.MaxBufferBytes)},
	}
}
