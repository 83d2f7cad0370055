package health

import (
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/apm"
	"github.com/spanstatsd/spanstatsd/internal/flush"
	"github.com/spanstatsd/spanstatsd/internal/ingest"
)

// Sources are the rooms whose statistics are shown.
type Sources struct {
	Ingest    *ingest.Server
	Aggregate *aggregate.Aggregator
	Flush     *flush.Flusher
	APM       *apm.Server // nil where it is off
}

// Books say what became of every span that tracers handed over. Each figure is
// counted where it happens and none is made from the others, so that an
// imbalance shows a defect.
type Books struct {
	Received   uint64            `json:"received"`
	Aggregated uint64            `json:"aggregated"`
	Dropped    map[string]uint64 `json:"dropped"`
	Flushed    uint64            `json:"flushed"`
	Unsent     uint64            `json:"unsent"`
	Held       uint64            `json:"held"`
	Balanced   bool              `json:"balanced"`
}

// Books reads them. While spans are on their way between two rooms they may be
// off by those; at a quiet moment they balance exactly.
func (s *Sources) Books() Books {
	in, agg, out := s.Ingest.Stats(), s.Aggregate.Stats(), s.Flush.Stats()
	b := Books{
		Received: in.Received, Aggregated: agg.Aggregated(), Dropped: in.Dropped,
		Flushed: out.Flushed, Held: agg.Held + out.Held,
	}
	for _, spans := range out.Unsent {
		b.Unsent += spans
	}
	b.Balanced = b.Received == b.Aggregated+in.DroppedTotal() && b.Aggregated == b.Flushed+b.Unsent+b.Held
	return b
}

// DroppedTotal is the sum over all reasons.
func (b *Books) DroppedTotal() (total uint64) {
	for _, spans := range b.Dropped {
		total += spans
	}
	return total
}
