package workload

import "github.com/spanstatsd/spanstatsd/internal/span"

// Snapshot is one finished span. Its key is the generator's.
type Snapshot struct {
	Key      *span.Key
	Index    int // of the key in Keys; -1 where every key is new
	Duration uint64
	End      int64 // nanoseconds since the Unix epoch
	Flags    span.Flags
}
