package admit

import (
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
)

// SpanBytes is what a publisher takes for each span of the largest batch so far: its slot,
// its key's hash and its drainer.
const SpanBytes = int(unsafe.Sizeof(aggregate.Slot{}) + unsafe.Sizeof(uint32(0)) + unsafe.Sizeof(uint16(0)))

// pathBytes is about what a publisher's places in the cycles and in the routing take.
const pathBytes = 1 << 10

// PublisherBytes is what a publisher takes beside its keys before so many drainers.
func (c *Config) PublisherBytes(drainers int) int {
	const (
		drainer = int(unsafe.Sizeof(ringShare{}) + unsafe.Sizeof(run{}))
		noKeys  = int(leastKeys * (unsafe.Sizeof(knownKey{}) + 2*unsafe.Sizeof(keySlot{})))
		fixed   = int(unsafe.Sizeof(Publisher{})) + noKeys + pathBytes
	)
	bytes := fixed + drainers*drainer + c.MaxBatch*SpanBytes
	return bytes + bytes/8 // which the allocator's size classes may take more
}
