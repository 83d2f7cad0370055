package admit

import (
	"github.com/spanstatsd/spanstatsd/internal/span"
	"github.com/spanstatsd/spanstatsd/internal/wire"
)

// source is where the snapshots of a batch come from: a message of our protocol, or the list that
// somebody has counted of a body. The other one is empty.
type source struct {
	walker wire.SpansWalker
	list   *span.Batch // nil of a message
}

func (f *source) len() int {
	if f.list != nil {
		return len(f.list.Snapshots)
	}
	return f.walker.Len()
}

// read reads one of the list's snapshots, and reports false behind the last one.
func (f *source) read(s *wire.Snapshot, number int) bool {
	if f.list == nil || number == len(f.list.Snapshots) {
		return false
	}
	one := &f.list.Snapshots[number]
	*s = wire.Snapshot{
		Key: f.list.KeyOf(one), Duration: one.Duration, End: one.End, Flags: one.Flags, Weight: one.Weight,
	}
	return true
}
