package ingest

import (
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/memory"
)

// goroutineBytes is about what a connection's goroutine takes: its stack, which
// grows to this on the longest way down, and the runtime's and the poller's part.
const goroutineBytes = 16 << 10

// Memory is the most that ingest may come to use: what its limits add up to. The
// kernel's socket buffers are the kernel's, though a control group counts them.
func (c *Config) Memory() []memory.Part {
	scratch := c.MaxBatch * (int(unsafe.Sizeof(aggregate.Slot{})) + 2)
	connection := baseBuffer + scratch + int(unsafe.Sizeof(conn{})) + goroutineBytes
	return []memory.Part{
		{Name: "connections", Bytes: int64(c.MaxConnections) * int64(connection), Flag: "max-connections"},
		{Name: "keys of connections", Bytes: int64(c.MaxKeyBytesInAll), Flag: "max-key-bytes-in-all"},
		{Name: "buffers for large frames", Bytes: int64(c.MaxBufferBytes), Flag: "max-buffer-bytes"},
	}
}
