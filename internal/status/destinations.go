package status

import (
	"slices"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/agent"
	"github.com/spanstatsd/spanstatsd/internal/export/prometheus"
)

// Delivery is where statistics go, and what became of them there.
type Delivery struct {
	Agent        Agent               `json:"agent"`
	Retry        Retry               `json:"retry"`   // of the first destination
	Flushes      []export.Flush      `json:"flushes"` // to the first destination
	Destinations []DestinationStatus `json:"destinations"`
}

// DestinationStatus is one place that statistics are sent to, and what became of them there.
type DestinationStatus struct {
	Name      string         `json:"name"`
	URL       string         `json:"url"`
	State     export.State   `json:"state"`
	Reachable bool           `json:"reachable"`
	Takes     bool           `json:"takes"`
	Books     DeliveryBooks  `json:"books"`
	Retry     Retry          `json:"retry"`
	Flushes   []export.Flush `json:"flushes"`
	Scraped   *Scraped       `json:"scraped,omitempty"` // where nothing is sent to it
	Clock     *Clock         `json:"clock,omitempty"`   // where an answer to a payload has said a time
}

// Clock is how far a destination's is ahead of the daemon's, and when it said so.
type Clock struct {
	AheadSeconds float64   `json:"ahead_seconds"`
	At           time.Time `json:"at"`
}

// clockOf is what a destination has said last, nil for never.
func clockOf(c export.Clock) *Clock {
	if c.At.IsZero() {
		return nil
	}
	return &Clock{c.Ahead.Seconds(), c.At}
}

// Retry is what waits for a destination.
type Retry struct {
	Payloads      int     `json:"payloads"`
	Bytes         int     `json:"bytes"`
	MaxBytes      int     `json:"max_bytes"`
	OldestSeconds float64 `json:"oldest_seconds"`
	MaxSeconds    float64 `json:"max_seconds"`
}

// destinations are all of them, the agent first where somebody named it, and last where it is looked for.
func (s *snapshot) destinations() (all []DestinationStatus) {
	for i := range s.out {
		d := &s.out[i]
		all = append(all, DestinationStatus{
			Name: d.Name(), URL: d.URL(), State: d.State(), Reachable: d.Reachable, Takes: d.Takes,
			Books: s.deliveryBooks(i),
			Retry: Retry{
				Payloads: d.QueuePayloads, Bytes: d.QueueBytes, MaxBytes: d.QueueMaxBytes,
				OldestSeconds: d.OldestAge.Seconds(), MaxSeconds: d.MaxAge.Seconds(),
			},
			Flushes: d.Flushes(), Scraped: d.scraped, Clock: clockOf(d.Clock),
		})
	}
	return all
}

// Others are the destinations beside the first, whose books are Books.
func (s *Sources) Others() []DestinationStatus {
	now := s.snapshot()
	return now.destinations()[1:]
}

// Agent is the way to the agent and what it wants.
type Agent struct {
	URL       string       `json:"url"`
	State     export.State `json:"state"`
	Reachable bool         `json:"reachable"`
	Version   string       `json:"version"`
	Stats     bool         `json:"stats"` // whether it takes any
	PeerTags  []string     `json:"peer_tags"`
	SpanKinds []string     `json:"span_kinds"`
}

// AgentOff is the agent's state where there is none.
const AgentOff export.State = "off"

// agentStatus is what status says of it.
func agentStatus(exporter *agent.Exporter, s *snapshot) Agent {
	if exporter == nil {
		return Agent{State: AgentOff, PeerTags: []string{}, SpanKinds: []string{}}
	}
	out := &s.out[slices.IndexFunc(s.out, func(d destination) bool { return d.Name() == agent.Name })]
	wants := exporter.Features()
	return Agent{
		URL: exporter.URL(), State: out.State(), Reachable: out.Reachable, Version: exporter.Version(),
		Stats: wants.Stats, PeerTags: list(wants.PeerTags), SpanKinds: list(wants.SpanKinds),
	}
}

func delivery(c *Config, s *snapshot) Delivery {
	all := s.destinations()
	return Delivery{
		Agent: agentStatus(c.Sources.Agent, s), Retry: all[0].Retry, Flushes: all[0].Flushes,
		Destinations: all,
	}
}

// Scraped is when somebody last took statistics that are kept to be scraped.
type Scraped struct {
	Last time.Time `json:"last"` // zero before the first
}

// scrapedOf is that of a destination, nil where something is sent to it.
func scrapedOf(d export.Destination, x *prometheus.Exporter) *Scraped {
	if x == nil || d.Name() != x.Describe().Name {
		return nil
	}
	all := &Scraped{}
	if last := lastScrape(x); last != 0 {
		all.Last = time.Unix(last, 0).UTC()
	}
	return all
}

// lastScrape is the same in seconds since the Unix epoch, 0 for never.
func lastScrape(x *prometheus.Exporter) int64 {
	if x == nil {
		return 0
	}
	return x.LastScrape()
}
