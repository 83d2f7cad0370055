package ingest

import (
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/routing"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/memory"
)

// goroutineBytes is about what a connection's goroutine takes: its stack, which
// grows to this on the longest way down, and the runtime's and the poller's part.
const goroutineBytes = 16 << 10

// answerBytes is about what the answer to a flush takes while it is owed: a stack
// that stays as small as it begins, and what it waits with.
const answerBytes = 3 << 10

// Memory is the most that ingest may come to use before so many drainers: what its
// limits add up to. The kernel's socket buffers are the kernel's, though a control
// group counts them.
func (c *Config) Memory(drainers int) []memory.Part {
	return []memory.Part{
		{Name: "connections", Bytes: int64(c.MaxConnections) * int64(c.connectionBytes(drainers)), Flag: "max-connections"},
		{Name: "keys of connections", Bytes: int64(c.MaxKeyBytesInAll), Flag: "max-key-bytes-in-all"},
		{Name: "buffers over 64 KiB", Bytes: int64(c.MaxBufferBytes), Flag: "max-buffer-bytes"},
	}
}

// connectionBytes is what a connection takes beside its keys.
func (c *Config) connectionBytes(drainers int) int {
	return c.PublisherBytes(drainers) + baseBuffer + goroutineBytes + maxOpenFlushes*answerBytes
}

// PublisherBytes is what a publisher takes beside its keys.
func (c *Config) PublisherBytes(drainers int) int {
	const (
		lane     = int(unsafe.Sizeof(uint16(0)))
		slot     = int(unsafe.Sizeof(aggregate.Slot(0)))
		drainer  = int(unsafe.Sizeof(share{})+unsafe.Sizeof(run{})) + lane
		noKeys   = int(leastKeys * (1 + unsafe.Sizeof(knownKey{}) + 2*unsafe.Sizeof(keySlot{})))
		anyBatch = int(unsafe.Sizeof(conn{})+unsafe.Sizeof(socket{})) + noKeys + routing.MaxPartitions*lane // as many may be spread
	)
	return anyBatch + drainers*drainer + mostRoom(c.MaxBatch, drainers)*slot
}
