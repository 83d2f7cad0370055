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
	ingest       ingest.Stats // native socket
	admit        admit.Stats
	aggregate    aggregate.Stats
	destinations []destination
	receivers    []receiver.Status // in the order of Sources.Receivers
	apm          datadog.Stats
	otlp         otlp.Stats
	flushSeconds export.Histogram
	lateSpans    uint64 // spans that ended before the window, sum of all drainers
	earlySpans   uint64 // spans that end in the future, sum of all drainers
}

// destination contains the statistics of one destination.
type destination struct {
	export.Destination
	export.Stats
	scraped *Scraped // nil unless it is scraped
}

// snapshot reads the statistics of all components, from the destinations back to the receivers. In this
// order, a span that arrives during the call can be counted as received without being exported, but
// never as exported without being received.
func (s *Sources) snapshot() (stats snapshot) {
	for _, d := range s.Flush.Destinations() {
		stats.destinations = append(stats.destinations, destination{
			Destination: d, Stats: d.Stats(), scraped: lastScrapeOf(d, s.Prometheus),
		})
	}
	stats.flushSeconds = s.Flush.Durations()
	stats.aggregate = s.Aggregate.Stats()
	stats.admit = s.Admit.Stats()
	stats.ingest = s.Ingest.Stats()
	stats.apm = s.APM.Stats()
	stats.otlp = s.OTLP.Stats()
	for _, receiver := range s.Receivers {
		stats.receivers = append(stats.receivers, receiver.Server.Status())
	}
	for _, drainer := range stats.aggregate.Drainers {
		stats.lateSpans += drainer.Late
		stats.earlySpans += drainer.Early
	}
	return stats
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
	// rings, or moved while this was read. It can be negative if they moved.
	InTransit int64 `json:"in_transit"`
	// AdjustedCount is the number of spans that the aggregated ones represent by their sampling rates.
	AdjustedCount uint64 `json:"adjusted_count"`
	// Values is the accounting of the values of --measure, which are not spans.
	Values   ValueAccounting `json:"values"`
	Balanced bool            `json:"balanced"` // whether the accounting balances, also for values and at every destination
}

// ValueAccounting is the accounting of the values of measured attributes.
type ValueAccounting struct {
	Received   uint64 `json:"received"`
	Aggregated uint64 `json:"aggregated"`
	Dropped    uint64 `json:"dropped"` // with their spans
	Refused    uint64 `json:"refused"` // not numbers, or out of range; not received
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

// Accounting returns the accounting of all spans so far. It is exact after all receivers have
// stopped. Before that, spans that move between components during the call make it inexact.
func (s *Sources) Accounting() Accounting {
	stats := s.snapshot()
	return stats.accounting()
}

// accounting compares the number of received spans with the numbers of aggregated, dropped,
// delivered and pending ones. The result is balanced if each received span is aggregated or
// dropped, and if each destination accounts for all aggregated spans.
func (s *snapshot) accounting() Accounting {
	const firstDestination = 0 // Status.Destinations has the accounting of each destination
	a := Accounting{
		Received: s.admit.Received, Aggregated: s.aggregate.Aggregated(), Dropped: s.admit.Dropped,
		DeliveryAccounting: s.deliveryAccounting(firstDestination),
		PendingInTables:    s.aggregate.Pending, AdjustedCount: s.aggregate.AdjustedCount(),
	}
	accounted := a.Aggregated + a.DroppedTotal()
	a.InTransit = int64(a.Received) - int64(accounted)
	a.Values = s.valueAccounting()
	areSpansBalanced := a.InTransit == 0
	areValuesBalanced := a.Values.Received == a.Values.Aggregated+a.Values.Dropped
	a.Balanced = areSpansBalanced && areValuesBalanced && s.areDestinationsBalanced(a.Aggregated)
	return a
}

// areDestinationsBalanced reports whether each destination accounts for all aggregated spans and values.
func (s *snapshot) areDestinationsBalanced(aggregatedSpans uint64) bool {
	for i := range s.destinations {
		delivery := s.deliveryAccounting(i)
		if delivery.total() != aggregatedSpans || !s.hasAllValues(i) {
			return false
		}
	}
	return true
}

// valueAccounting returns the accounting of values.
func (s *snapshot) valueAccounting() ValueAccounting {
	a := ValueAccounting{Received: s.admit.ValuesReceived, Aggregated: s.aggregate.Values()}
	for _, values := range s.admit.ValuesDropped {
		a.Dropped += values
	}
	for _, values := range s.otlp.RefusedValues {
		a.Refused += values
	}
	return a
}

// hasAllValues reports whether the destination with the given index accounts for all aggregated values, if it gets any.
func (s *snapshot) hasAllValues(index int) bool {
	values := &s.destinations[index].Stats.Values
	if !values.Expected {
		return true
	}
	total := values.Flushed + values.Pending + s.aggregate.PendingValues
	for _, unsent := range values.Unsent {
		total += unsent
	}
	return total == s.aggregate.Values()
}

// deliveryAccounting returns the accounting of the destination with the given index.
func (s *snapshot) deliveryAccounting(index int) DeliveryAccounting {
	stats := &s.destinations[index].Stats
	d := DeliveryAccounting{
		Flushed: stats.Flushed, UnsentBy: make(map[string]uint64, len(stats.Unsent)),
		Pending: s.aggregate.Pending + stats.Pending, PendingInPayloads: stats.Pending,
		BeforeDiscovery: stats.BeforeDiscovery,
	}
	for reason, spans := range stats.Unsent {
		d.UnsentBy[string(reason)] = spans
		d.Unsent += spans
	}
	return d
}

// total returns the number of aggregated spans that the destination accounts for.
func (d *DeliveryAccounting) total() uint64 {
	return d.Flushed + d.Unsent + d.Pending + d.BeforeDiscovery
}

// DroppedTotal returns the number of dropped spans, for all reasons.
func (a *Accounting) DroppedTotal() (total uint64) {
	for _, spans := range a.Dropped {
		total += spans
	}
	return total
}

// Lost returns the number of spans that were dropped against the operator's intention. It excludes
// spans that match a rule of --ignore, and spans that the agent counts instead.
func (a *Accounting) Lost() uint64 {
	return a.DroppedTotal() - a.Dropped[ignored] - a.Dropped[leftToAgent]
}
