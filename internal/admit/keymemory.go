package admit

import "sync/atomic"

// keyMemory is what the key tables of all publishers may hold together. Half of it is set
// apart in equal shares, one for each connection that may come, so that none can be left
// without. The other half is common: whoever has used its share up takes from it, and a
// publisher that is no connection has only that. The last quarter of the common part is
// for keys with numbers, since those that have none can be resolved again, and the spans
// of a number that finds no room lose their labels.
type keyMemory struct {
	share  int64 // of each connection
	common int64
	taken  atomic.Int64 // of the common part
}

func newKeyMemory(bytes, connections int) keyMemory {
	share := int64(bytes) / 2 / int64(connections)
	return keyMemory{share: share, common: int64(bytes) - share*int64(connections)}
}

// keyUse is what a key is put into a table for.
type keyUse uint8

const (
	keyCached   keyUse = iota // it has come by its bytes
	keyNumbered               // it is about to get a number
)

// keyShare is one publisher's part of the memory, and the only place that knows how much
// of it the publisher holds: what its table says it holds is what it is charged for.
type keyShare struct {
	memory *keyMemory
	own    int64
	held   int
}

// take finds room for cost bytes more than the publisher holds, and charges for them.
func (s *keyShare) take(cost int, use keyUse) bool {
	more := s.beyond(s.held+cost) - s.beyond(s.held)
	limit := s.memory.common
	if use == keyCached {
		limit -= limit / 4
	}
	if more > 0 && s.memory.taken.Add(more) > limit {
		s.memory.taken.Add(-more)
		return false
	}
	s.held += cost
	return true
}

// shrink makes known that the publisher holds only so much.
func (s *keyShare) shrink(to int) {
	s.memory.taken.Add(s.beyond(to) - s.beyond(s.held))
	s.held = to
}

// beyond is the part of what a publisher holds that is not its own share.
func (s *keyShare) beyond(holds int) int64 { return max(0, int64(holds)-s.own) }
