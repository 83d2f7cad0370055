package health

import (
	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/apm"
	"github.com/spanstatsd/spanstatsd/internal/flush"
	"github.com/spanstatsd/spanstatsd/internal/ingest"
)

// Sources are the rooms whose statistics are shown.
type Sources struct {
	Ingest    *ingest.Server
	Admit     *admit.Publishers
	Aggregate *aggregate.Aggregator
	Flush     *flush.Flusher
	APM       *apm.Server // nil where it is off
}

// look is every room's statistics, read once.
type look struct {
	in       ingest.Stats
	admitted admit.Stats
	agg      aggregate.Stats
	out      flush.Stats

	late, early uint64 // of all drainers
}

// look reads downstream first: a span that moves on meanwhile is then missing
// from a part, never counted in a part before it is in the whole.
func (s *Sources) look() (l look) {
	l.out = s.Flush.Stats()
	l.agg = s.Aggregate.Stats()
	for _, d := range l.agg.Drainers {
		l.late, l.early = l.late+d.Late, l.early+d.Early
	}
	l.admitted = s.Admit.Stats()
	l.in = s.Ingest.Stats()
	return l
}

// Books say what became of every span that tracers handed over. Each figure is
// counted where it happens and none is made from the others, so that an
// imbalance shows a defect. Only the last two are computed.
type Books struct {
	Received       uint64            `json:"received"`
	Aggregated     uint64            `json:"aggregated"`
	Dropped        map[string]uint64 `json:"dropped"`
	Flushed        uint64            `json:"flushed"`
	Unsent         uint64            `json:"unsent"`
	UnsentBy       map[string]uint64 `json:"unsent_by_reason"`
	Held           uint64            `json:"held"`
	HeldInTables   uint64            `json:"held_in_tables"`
	HeldInPayloads uint64            `json:"held_in_payloads"`
	// InTransit is what was received and is neither aggregated nor dropped yet:
	// what stands in the rings, give or take what moved while this was read.
	InTransit int64 `json:"in_transit"`
	Balanced  bool  `json:"balanced"`
}

// Books reads them. While spans are on their way between two rooms they may be
// off by those; at a quiet moment they balance exactly.
func (s *Sources) Books() Books { return s.look().books() }

func (l look) books() Books {
	b := Books{
		Received: l.admitted.Received, Aggregated: l.agg.Aggregated(), Dropped: l.admitted.Dropped,
		Flushed: l.out.Flushed, UnsentBy: make(map[string]uint64, len(l.out.Unsent)),
		Held: l.agg.Held + l.out.Held, HeldInTables: l.agg.Held, HeldInPayloads: l.out.Held,
	}
	for reason, spans := range l.out.Unsent {
		b.UnsentBy[string(reason)] = spans
		b.Unsent += spans
	}
	b.InTransit = int64(b.Received - b.Aggregated - b.DroppedTotal())
	b.Balanced = b.InTransit == 0 && b.Aggregated == b.Flushed+b.Unsent+b.Held
	return b
}

// DroppedTotal is the sum over all reasons.
func (b *Books) DroppedTotal() (total uint64) {
	for _, spans := range b.Dropped {
		total += spans
	}
	return total
}
