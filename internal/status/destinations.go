package status

import (
	"slices"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/agent"
	"github.com/spanstatsd/spanstatsd/internal/export/prometheus"
)

// Delivery is the state of the destinations.
type Delivery struct {
	Agent   Agent          `json:"agent"`
	Retry   Retry          `json:"retry"`   // queue of the first destination
	Flushes []export.Flush `json:"flushes"` // last flushes to the first destination
	// Destinations has the Datadog agent first if its address is configured, and last if it is auto-discovered.
	Destinations []DestinationStatus `json:"destinations"`
}

// DestinationStatus is the state of one destination.
type DestinationStatus struct {
	Name        string             `json:"name"`
	URL         string             `json:"url"`
	State       export.State       `json:"state"`
	Reachable   bool               `json:"reachable"`
	IsAccepting bool               `json:"accepting"`
	Accounting  DeliveryAccounting `json:"accounting"`
	Retry       Retry              `json:"retry"`
	Flushes     []export.Flush     `json:"flushes"`
	Scraped     *Scraped           `json:"scraped,omitempty"` // only for a scraped destination
	Clock       *Clock             `json:"clock,omitempty"`   // only if a response to a payload contained a time
}

// Clock is the difference between a destination's clock and the daemon's, and the time at which it
// was measured.
type Clock struct {
	AheadSeconds float64   `json:"ahead_seconds"`
	At           time.Time `json:"at"`
}

// clockOf converts the measured difference of a destination's clock to the type for JSON. It returns
// nil if the difference has not been measured yet.
func clockOf(c export.Clock) *Clock {
	if c.At.IsZero() {
		return nil
	}
	return &Clock{AheadSeconds: c.Ahead.Seconds(), At: c.At}
}

// Retry is the state of a destination's queue.
type Retry struct {
	Payloads      int     `json:"payloads"`
	Bytes         int     `json:"bytes"`
	MaxBytes      int     `json:"max_bytes"`
	OldestSeconds float64 `json:"oldest_seconds"`
	MaxSeconds    float64 `json:"max_seconds"`
}

// destinationStatuses returns the state of all destinations.
func (s *snapshot) destinationStatuses() (all []DestinationStatus) {
	for i := range s.destinations {
		d := &s.destinations[i]
		all = append(all, DestinationStatus{
			Name: d.Name(), URL: d.URL(), State: d.State(), Reachable: d.Reachable, IsAccepting: d.IsAccepting,
			Accounting: s.deliveryAccounting(i), Retry: retryOf(&d.Stats),
			Flushes: d.Flushes(), Scraped: d.scraped, Clock: clockOf(d.Clock),
		})
	}
	return all
}

// retryOf returns the state of a destination's queue.
func retryOf(s *export.Stats) Retry {
	return Retry{
		Payloads: s.QueuePayloads, Bytes: s.QueueBytes, MaxBytes: s.QueueMaxBytes,
		OldestSeconds: s.OldestAge.Seconds(), MaxSeconds: s.MaxAge.Seconds(),
	}
}

// AdditionalDestinations returns the state of all destinations except the first. Accounting contains
// the counts of the first destination.
func (s *Sources) AdditionalDestinations() []DestinationStatus {
	stats := s.snapshot()
	return stats.destinationStatuses()[1:]
}

// Agent is the state of the agent, and its features.
type Agent struct {
	URL       string       `json:"url"`
	State     export.State `json:"state"`
	Reachable bool         `json:"reachable"`
	Version   string       `json:"version"`
	Stats     bool         `json:"stats"` // whether the agent accepts statistics
	PeerTags  []string     `json:"peer_tags"`
	SpanKinds []string     `json:"span_kinds"`
}

// AgentOff is the state if there is no agent.
const AgentOff export.State = "off"

// agentStatus returns the state of the Datadog agent. exporter is nil if there is no agent.
func agentStatus(exporter *agent.Exporter, s *snapshot) Agent {
	if exporter == nil {
		return Agent{State: AgentOff, PeerTags: []string{}, SpanKinds: []string{}}
	}
	isAgent := func(d destination) bool { return d.Name() == agent.Name }
	stats := &s.destinations[slices.IndexFunc(s.destinations, isAgent)].Stats
	features := exporter.Features()
	return Agent{
		URL: exporter.URL(), State: stats.State(), Reachable: stats.Reachable, Version: exporter.Version(),
		Stats: features.Stats, PeerTags: nonNil(features.PeerTags), SpanKinds: nonNil(features.SpanKinds),
	}
}

// delivery returns the state of the destinations.
func delivery(c *Config, s *snapshot) Delivery {
	all := s.destinationStatuses()
	return Delivery{
		Agent: agentStatus(c.Sources.Agent, s), Retry: all[0].Retry, Flushes: all[0].Flushes,
		Destinations: all,
	}
}

// Scraped is the time of the last scrape.
type Scraped struct {
	Last time.Time `json:"last"` // zero if there was none
}

// lastScrapeOf returns the time of the last scrape of d. It returns nil if d is not the destination that
// Prometheus scrapes.
func lastScrapeOf(d export.Destination, exporter *prometheus.Exporter) *Scraped {
	isScraped := exporter != nil && d.Name() == exporter.Describe().Name
	if !isScraped {
		return nil
	}
	scraped := &Scraped{}
	if seconds := exporter.LastScrape(); seconds != 0 {
		scraped.Last = time.Unix(seconds, 0).UTC()
	}
	return scraped
}

// lastScrape returns the time of the last scrape in seconds since the Unix epoch. It returns 0 if
// there was none.
func lastScrape(exporter *prometheus.Exporter) int64 {
	if exporter == nil {
		return 0
	}
	return exporter.LastScrape()
}
