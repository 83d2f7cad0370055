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

// Sources are the components whose statistics are shown.
type Sources struct {
	Ingest    *ingest.Server
	Admit     *admit.Publishers
	Aggregate *aggregate.Aggregator
	Flush     *export.Flusher
	Agent     *agent.Exporter  // nil without an agent
	Receivers []ReceiverSource // all receivers
	APM       *datadog.Server  // for statistics that other receivers do not have; nil if disabled
	OTLP      *otlp.Server     // for statistics that other receivers do not have; nil if disabled
	Exemplars *exemplars.Table // nil if disabled

	Prometheus *prometheus.Exporter // nil if disabled
}

// snapshot contains the statistics of all components, read once. Accounting, /status and metrics
// are computed from it.
type snapshot struct {
	in        ingest.Stats
	admitted  admit.Stats
	agg       aggregate.Stats
	out       []destination
	receivers []receiver.Status // in the order of Sources.Receivers
	apm       datadog.Stats
	otlp      otlp.Stats

	flushSeconds export.Histogram

	late, early uint64 // sum of all drainers
}

// destination contains the statistics of one destination.
type destination struct {
	export.Destination
	export.Stats
	scraped *Scraped // nil unless it is scraped
}

// snapshot reads the statistics in reverse order of the data flow. So a span that moves in the
// meantime can be missing from a downstream count, but is never counted downstream before it is
// counted upstream.
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
	for i := range s.Receivers {
		now.receivers = append(now.receivers, s.Receivers[i].Of.Status())
	}
	return now
}

// Accounting is the accounting of all received spans. Each number is counted where the event happens and
// not computed from others, so that an imbalance reveals a bug. Only InTransit and Balanced are
// computed.
type Accounting struct {
	Received           uint64            `json:"received"`
	Aggregated         uint64            `json:"aggregated"`
	Dropped            map[string]uint64 `json:"dropped"`
	DeliveryAccounting                   // accounting of the first destination
	PendingInTables    uint64            `json:"pending_in_tables"`
	// InTransit is the number of spans that are neither aggregated nor dropped yet, because they are in
	// rings, or moved while this was read.
	InTransit int64 `json:"in_transit"`
	// AdjustedCount is the number of spans that the aggregated ones represent by their sampling rates.
	AdjustedCount uint64 `json:"adjusted_count"`
	Balanced      bool   `json:"balanced"` // whether the accounting balances, at every destination
}

// DeliveryAccounting is the accounting of all aggregated spans at one destination.
type DeliveryAccounting struct {
	Flushed           uint64            `json:"flushed"`
	Unsent            uint64            `json:"unsent"`
	UnsentBy          map[string]uint64 `json:"unsent_by_reason"`
	Pending           uint64            `json:"pending"`
	PendingInPayloads uint64            `json:"pending_in_payloads"`
	// BeforeDiscovery is the number of spans counted before an auto-discovered destination was found.
	BeforeDiscovery uint64 `json:"before_discovery"`
}

// Accounting returns the accounting. Spans that move between components while it is read make it
// inexact; otherwise it balances exactly.
func (s *Sources) Accounting() Accounting {
	now := s.snapshot()
	return now.accounting()
}

// accounting computes the accounting. It is balanced if nothing is in transit, and each destination
// accounts for all aggregated spans.
func (s *snapshot) accounting() Accounting {
	b := Accounting{
		Received: s.admitted.Received, Aggregated: s.agg.Aggregated(), Dropped: s.admitted.Dropped,
		DeliveryAccounting: s.deliveryAccounting(0), PendingInTables: s.agg.Pending,
		AdjustedCount: s.agg.AdjustedCount(),
	}
	b.InTransit = int64(b.Received - b.Aggregated - b.DroppedTotal())
	b.Balanced = b.InTransit == 0
	for i := range s.out {
		d := s.deliveryAccounting(i)
		b.Balanced = b.Balanced && b.Aggregated == d.Flushed+d.Unsent+d.Pending+d.BeforeDiscovery
	}
	return b
}

// deliveryAccounting returns the accounting of one destination.
func (s *snapshot) deliveryAccounting(i int) DeliveryAccounting {
	out := &s.out[i]
	b := DeliveryAccounting{
		Flushed: out.Flushed, UnsentBy: make(map[string]uint64, len(out.Unsent)),
		Pending: s.agg.Pending + out.Pending, PendingInPayloads: out.Pending,
		BeforeDiscovery: out.BeforeDiscovery,
	}
	for reason, spans := range out.Unsent {
		b.UnsentBy[string(reason)] = spans
		b.Unsent += spans
	}
	return b
}

// DroppedTotal returns the sum over all reasons.
func (b *Accounting) DroppedTotal() (total uint64) {
	for _, spans := range b.Dropped {
		total += spans
	}
	return total
}

// Lost returns the sum over all reasons that are losses. Spans that a rule of --ignore excludes, and spans that are left
// to the agent to count, are not lost.
func (b *Accounting) Lost() uint64 {
	return b.DroppedTotal() - b.Dropped[ignored] - b.Dropped[leftToAgent]
}
