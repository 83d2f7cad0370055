package workload

import "github.com/spanstatsd/spanstatsd/internal/span"

// Snapshot is one finished span. Its key belongs to the generator.
type Snapshot struct {
	Key      *span.Key
	Index    int // index of the key in Keys; -1 if every key is new
	Duration uint64
	End      int64 // nanoseconds since the Unix epoch
	Flags    span.Flags
}
