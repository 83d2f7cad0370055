package health

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/flush"
	"github.com/spanstatsd/spanstatsd/internal/ingest"
	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spanstatsd/spanstatsd/internal/routing"
)

// StatusSchema is the version of the contract below: docs/status.md. A field
// may be added within a version; none is removed, renamed or given another
// meaning without a new one.
const StatusSchema = 1

// Status is the daemon at one moment, for a program to read. All of it is
// bounded, whatever tracers do.
type Status struct {
	Schema          int                 `json:"schema"`
	At              time.Time           `json:"at"`
	Version         string              `json:"version"`
	Started         time.Time           `json:"started"`
	UptimeSeconds   float64             `json:"uptime_seconds"`
	Ready           bool                `json:"ready"`
	NotReady        string              `json:"not_ready,omitempty"` // why
	Died            int                 `json:"predecessors_died"`
	Books           Books               `json:"books"`
	Collapsed       map[string]uint64   `json:"collapsed"`
	Late            uint64              `json:"late"`
	Early           uint64              `json:"early"`
	ClientLost      map[string]uint64   `json:"client_lost"`
	Cycle           Cycle               `json:"cycle"`
	Aggregates      Bounded             `json:"aggregates"`
	Origins         Bounded             `json:"origins"`
	Connections     Connections         `json:"connections"`
	Drainers        []Drainer           `json:"drainers"`
	Partitions      routing.Stats       `json:"partitions"`
	Tracers         []ingest.Tracer     `json:"tracers"`
	APM             *APM                `json:"apm,omitempty"`  // where it is on
	OTLP            *OTLP               `json:"otlp,omitempty"` // the same
	TracersNotShown int                 `json:"tracers_not_shown"`
	Agent           Agent               `json:"agent"`
	Retry           Retry               `json:"retry"`   // of the first destination
	Flushes         []flush.Flush       `json:"flushes"` // to the first destination
	Destinations    []DestinationStatus `json:"destinations"`
	Busiest         flush.Busiest       `json:"busiest"`
	Memory          Memory              `json:"memory"`
	Config          []Setting           `json:"config"`
}

// Memory is what the limits may come to, and what they must fit.
type Memory struct {
	Parts       []memory.Part `json:"parts"` // the largest first
	TotalBytes  int64         `json:"total_bytes"`
	LimitBytes  int64         `json:"limit_bytes"` // 0: none is known
	LimitSource string        `json:"limit_source,omitempty"`
}

// Cycle is where the wall-clock intervals stand.
type Cycle struct {
	Sealed          uint64    `json:"sealed"` // so far
	LastSeal        time.Time `json:"last_seal"`
	IntervalSeconds float64   `json:"interval_seconds"`
}

// Bounded is something that has a limit.
type Bounded struct {
	Live int `json:"live"`
	Max  int `json:"max"`
}

// Connections are the tracers' sockets.
type Connections struct {
	Live   int               `json:"live"`
	Max    int               `json:"max"`
	Total  uint64            `json:"total"`
	Faults map[string]uint64 `json:"faults"`
}

// Drainer is one drainer and its ring.
type Drainer struct {
	Aggregated uint64 `json:"aggregated"`
	Ring       Ring   `json:"ring"`
}

// Ring is how full one ring is and was.
type Ring struct {
	Slots     int `json:"slots"`
	Used      int `json:"used"`
	HighWater int `json:"high_water"`
}

// OTLP is what takes OTLP of SDKs.
type OTLP struct {
	Requests      map[string]uint64 `json:"requests"`  // by what became of their count
	Forwarded     map[string]uint64 `json:"forwarded"` // that were to go on, by what became of them
	Origins       int               `json:"origins"`
	BufferedBytes int64             `json:"buffered_bytes"`
	Connections   Bounded           `json:"connections"`
	Refused       uint64            `json:"refused_connections"`
	LastHeard     time.Time         `json:"last_heard"` // of an SDK; zero before the first
}

// otlp is nil where no SDK can come that way.
func (s *Server) otlp() *OTLP {
	if s.config.Sources.OTLP == nil {
		return nil
	}
	now := s.config.Sources.OTLP.Stats()
	return &OTLP{
		now.Requests, now.Forwarded, now.Origins, now.BufferedBytes,
		Bounded{now.Connections, s.config.Limits.OTLPConnections},
		now.Refused, now.LastHeard,
	}
}

// APM is the agent's API towards tracers as they are.
type APM struct {
	Requests      map[string]uint64 `json:"requests"` // with traces, by result
	Other         uint64            `json:"other"`    // requests of any other kind
	Failed        uint64            `json:"failed"`   // that the agent did not answer
	Origins       int               `json:"origins"`
	BufferedBytes int64             `json:"buffered_bytes"`
	Connections   Bounded           `json:"connections"`
	Refused       uint64            `json:"refused_connections"`
	LastHeard     time.Time         `json:"last_heard"` // of a tracer; zero before the first
}

// apm is nil where no tracer can come that way.
func (s *Server) apm() *APM {
	if s.config.Sources.APM == nil {
		return nil
	}
	now := s.config.Sources.APM.Stats()
	return &APM{
		now.Requests, now.Other, now.Failed, now.Origins, now.BufferedBytes,
		Bounded{now.Connections, s.config.Limits.APMConnections},
		now.Refused, now.LastHeard,
	}
}

// Status is what /status answers.
func (s *Server) Status() Status {
	now, l, from := time.Now(), s.config.Sources.look(), &s.config.Sources
	status := Status{
		Schema: StatusSchema, At: now, Version: s.config.Version, Started: s.started,
		UptimeSeconds: now.Sub(s.started).Seconds(), Died: s.config.Died(), Ready: s.ready.Load(),
		NotReady: s.notReady(), Books: l.books(), Collapsed: l.admitted.Collapsed, Late: l.late,
		Early: l.early, ClientLost: l.in.ClientLost,
		Cycle:      Cycle{l.agg.Sealed, l.agg.LastSeal, s.config.FlushInterval.Seconds()},
		Aggregates: Bounded{l.agg.Aggregates, s.config.Limits.Aggregates},
		Origins:    Bounded{l.agg.Origins, s.config.Limits.Origins},
		Connections: Connections{
			l.in.Connections, s.config.Limits.Connections, l.in.ConnectionsTotal,
			l.in.Faults,
		},
		Partitions: l.agg.Partitions,
		APM:        s.apm(), OTLP: s.otlp(),
		Agent: s.agent(&l), Destinations: l.destinations(),
		Busiest: from.Flush.Busiest(), Config: list(s.config.Settings),
	}
	first := &status.Destinations[0]
	status.Retry, status.Flushes = first.Retry, first.Flushes
	for _, d := range l.agg.Drainers {
		status.Drainers = append(status.Drainers,
			Drainer{d.Aggregated, Ring{d.Ring.Slots, d.Ring.Used, d.Ring.HighWater}})
	}
	status.Memory = Memory{Parts: list(s.config.Memory.Parts), TotalBytes: s.config.Memory.Total}
	if limit := s.config.MemoryLimit; limit.Known() {
		status.Memory.LimitBytes, status.Memory.LimitSource = limit.Bytes, limit.Source
	}
	p := &status.Partitions
	p.Drainers, p.Busiest = list(p.Drainers), list(p.Busiest)
	status.Tracers, status.TracersNotShown = shownTracers(from.Ingest.Tracers())
	return status
}

// maxTracers is how many connections are listed.
const maxTracers = 50

// shownTracers are those with most spans, where there are more than can be
// shown, and how many were left out. They keep their order, that of their
// connecting: a list that is looked at must stand still.
func shownTracers(tracers []ingest.Tracer) (shown []ingest.Tracer, left int) {
	left = len(tracers) - maxTracers
	if left <= 0 {
		return tracers, 0
	}
	byUse := slices.Clone(tracers)
	slices.SortStableFunc(byUse, func(a, b ingest.Tracer) int { return cmp.Compare(b.Received, a.Received) })
	shown = byUse[:maxTracers]
	slices.SortStableFunc(shown, func(a, b ingest.Tracer) int { return a.Since.Compare(b.Since) })
	return shown, left
}

// list is never null in JSON.
func list[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

func (s *Server) status(w http.ResponseWriter, _ *http.Request) { s.answerJSON(w, s.Status()) }
