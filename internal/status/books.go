package status

import (
	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/agent"
	"github.com/spanstatsd/spanstatsd/internal/export/prometheus"
	"github.com/spanstatsd/spanstatsd/internal/ingest"
	"github.com/spanstatsd/spanstatsd/internal/ingest/datadog"
	"github.com/spanstatsd/spanstatsd/internal/ingest/otlp"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver"
)

// Sources are the rooms whose statistics are shown.
type Sources struct {
	Ingest    *ingest.Server
	Admit     *admit.Publishers
	Aggregate *aggregate.Aggregator
	Flush     *export.Flusher
	Agent     *agent.Exporter  // nil where there is none
	Doors     []DoorSource     // all that there are
	APM       *datadog.Server  // for what only it has; nil where it is off
	OTLP      *otlp.Server     // the same
	Exemplars *exemplars.Table // nil where nobody wants any

	Prometheus *prometheus.Exporter // nil where nothing is scraped
}

// snapshot is the statistics of all packages, read once. The books, /status and the metrics are made of one.
type snapshot struct {
	in       ingest.Stats
	admitted admit.Stats
	agg      aggregate.Stats
	out      []destination
	doors    []receiver.Status // as Sources.Doors
	apm      datadog.Stats
	otlp     otlp.Stats

	flushSeconds export.Histogram

	late, early uint64 // of all drainers
}

// destination is the statistics of one destination.
type destination struct {
	export.Destination
	export.Stats
	scraped *Scraped // nil unless it is scraped
}

// snapshot reads downstream first: a span that moves on in the meantime is then missing from a part, and
// never counted in a part before it is counted in the whole.
func (s *Sources) snapshot() (now snapshot) {
	for _, d := range s.Flush.Destinations() {
		now.out = append(now.out, destination{d, d.Stats(), scrapedOf(d, s.Prometheus)})
	}
	now.flushSeconds = s.Flush.Durations()
	now.agg = s.Aggregate.Stats()
	for _, d := range now.agg.Drainers {
		now.late, now.early = now.late+d.Late, now.early+d.Early
	}
	now.admitted = s.Admit.Stats()
	now.in = s.Ingest.Stats()
	now.apm, now.otlp = s.APM.Stats(), s.OTLP.Stats()
	for i := range s.Doors {
		now.doors = append(now.doors, s.Doors[i].Of.Status())
	}
	return now
}

// Books say what became of every span that tracers handed over. Each figure is
// counted where it happens and none is made from the others, so that an
// imbalance shows a defect. Only the last two are computed.
type Books struct {
	Received      uint64            `json:"received"`
	Aggregated    uint64            `json:"aggregated"`
	Dropped       map[string]uint64 `json:"dropped"`
	DeliveryBooks                   // of the first destination
	HeldInTables  uint64            `json:"held_in_tables"`
	// InTransit is what was received and is neither aggregated nor dropped yet:
	// what stands in the rings, give or take what moved while this was read.
	InTransit int64 `json:"in_transit"`
	Balanced  bool  `json:"balanced"` // of every destination
}

// DeliveryBooks say what became of every aggregated span at one destination.
type DeliveryBooks struct {
	Flushed        uint64            `json:"flushed"`
	Unsent         uint64            `json:"unsent"`
	UnsentBy       map[string]uint64 `json:"unsent_by_reason"`
	Held           uint64            `json:"held"`
	HeldInPayloads uint64            `json:"held_in_payloads"`
	// BeforeFound is what was counted before a destination was found that nobody named.
	BeforeFound uint64 `json:"before_found"`
}

// Books reads them. While spans are on their way between two rooms they may be
// off by those; at a quiet moment they balance exactly.
func (s *Sources) Books() Books {
	now := s.snapshot()
	return now.books()
}

func (s *snapshot) books() Books {
	b := Books{
		Received: s.admitted.Received, Aggregated: s.agg.Aggregated(), Dropped: s.admitted.Dropped,
		DeliveryBooks: s.deliveryBooks(0), HeldInTables: s.agg.Held,
	}
	b.InTransit = int64(b.Received - b.Aggregated - b.DroppedTotal())
	b.Balanced = b.InTransit == 0
	for i := range s.out {
		at := s.deliveryBooks(i)
		b.Balanced = b.Balanced && b.Aggregated == at.Flushed+at.Unsent+at.Held+at.BeforeFound
	}
	return b
}

// deliveryBooks are those of one destination.
func (s *snapshot) deliveryBooks(i int) DeliveryBooks {
	out := &s.out[i]
	b := DeliveryBooks{
		Flushed: out.Flushed, UnsentBy: make(map[string]uint64, len(out.Unsent)),
		Held: s.agg.Held + out.Held, HeldInPayloads: out.Held,
		BeforeFound: out.BeforeFound,
	}
	for reason, spans := range out.Unsent {
		b.UnsentBy[string(reason)] = spans
		b.Unsent += spans
	}
	return b
}

// DroppedTotal is the sum over all reasons.
func (b *Books) DroppedTotal() (total uint64) {
	for _, spans := range b.Dropped {
		total += spans
	}
	return total
}
