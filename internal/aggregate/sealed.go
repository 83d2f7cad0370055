package aggregate

import (
	"time"

	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/sketch"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Sealed is one cycle that nobody writes any more: every drainer's table of it, and
// what the interval's registry held of origins and keys. It belongs to the receiver
// until Release.
type Sealed struct {
	Cycle   uint64
	Start   time.Time           // of the cycle
	End     time.Time           // when it was sealed
	Width   time.Duration       // of a bucket
	Origins []span.Origin       // by OriginID
	Keys    []registry.KeyEntry // by KeyID

	// Cleared is how many snapshots a clear gave up, which are in no table. Then
	// there is nothing else here.
	Cleared uint64

	// Delivery is resolved when every payload of the cycle has had its outcome.
	Delivery *Delivery

	tables  []*Table // one a drainer; the same key may have a row in several
	merged  *Merged  // nil where nothing is merged
	release func()
}

// NewSealed makes a sealed cycle of its parts.
func NewSealed(cycle uint64, start, end time.Time, width time.Duration,
	origins []span.Origin, keys []registry.KeyEntry, tables ...*Table,
) *Sealed {
	return &Sealed{
		Cycle: cycle, Start: start, End: end, Width: width,
		Origins: origins, Keys: keys, tables: tables, Delivery: NewDelivery(),
	}
}

// Parts visits all that was counted.
func (s *Sealed) Parts(yield func(Part) bool) {
	for _, table := range s.tables {
		for i := range table.Len() {
			if !yield(table.Part(i)) {
				return
			}
		}
	}
	if s.merged == nil {
		return
	}
	for i := range s.merged.rows {
		if !yield(s.merged.part(i)) {
			return
		}
	}
}

// Mappings are those of the parts, by MappingID.
func (s *Sealed) Mappings() []sketch.Mapping {
	if s.merged == nil {
		return []sketch.Mapping{sketch.OwnMapping}
	}
	return s.merged.mappings
}

// Spans is the number of snapshots in all tables, counted from their rows.
func (s *Sealed) Spans() (spans uint64) {
	for part := range s.Parts {
		spans += part.Counts().Spans
	}
	return spans
}

// Release gives the tables back for reuse; the next interval but one does the same
// to the registry. Nothing of Sealed may be touched afterwards, except Delivery.
func (s *Sealed) Release() {
	if s.release != nil {
		s.release()
	}
	s.release, s.Origins, s.Keys, s.tables, s.merged = nil, nil, nil, nil, nil
}
