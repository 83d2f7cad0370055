package status

import (
	"cmp"
	"slices"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/ingest"
	"github.com/spanstatsd/spanstatsd/internal/ingest/otlp/sdkmetrics"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver"
)

// Senders are who hands spans over.
type Senders struct {
	Connections     Connections     `json:"connections"`
	Tracers         []ingest.Tracer `json:"tracers"`
	TracersNotShown int             `json:"tracers_not_shown"`
	// Doors are those that are on, by the first word of their flags; two have a section beside, as before
	// there were more.
	Doors map[string]*OnwardDoor `json:"doors"`
	APM   *APM                   `json:"apm,omitempty"`
	OTLP  *OnwardDoor            `json:"otlp,omitempty"`
	SDKs  *sdkmetrics.Sums       `json:"sdks,omitempty"` // what they say of their spans, once one does
}

// Connections are the tracers' sockets.
type Connections struct {
	Live   int               `json:"live"`
	Max    int               `json:"max"`
	Total  uint64            `json:"total"`
	Faults map[string]uint64 `json:"faults"`
}

// Door is what takes requests with traces over HTTP.
type Door struct {
	Requests      map[string]uint64 `json:"requests"` // by what became of their count
	Origins       int               `json:"origins"`
	BufferedBytes int64             `json:"buffered_bytes"`
	Connections   Bounded           `json:"connections"`
	Refused       uint64            `json:"refused_connections"`
	LastHeard     time.Time         `json:"last_heard"` // of a sender; zero before the first
}

// APM is the agent's API towards tracers as they are. Its requests are those with traces.
type APM struct {
	Door
	// Statistics are requests with what tracers computed themselves, by what became of it.
	Statistics map[string]uint64 `json:"statistics"`
	Other      uint64            `json:"other"`  // requests of any other kind
	Failed     uint64            `json:"failed"` // that the agent did not answer
}

// OnwardDoor is one with what becomes of requests that are to go on.
type OnwardDoor struct {
	Brings string `json:"brings"` // what comes by it, in words
	Door
	Forwarded map[string]uint64 `json:"forwarded,omitempty"` // by what became of them
	// RefusedSignals are the refused requests without spans, by signal; part of the result "refused".
	RefusedSignals map[string]uint64 `json:"refused_signals,omitempty"`
	Forward        *Forward          `json:"forward,omitempty"`
}

// Forward is where they go on to.
type Forward struct {
	URL   string       `json:"url"`
	State export.State `json:"state"`
	Said  string       `json:"said,omitempty"` // why it did not take the last request
}

// senders are all of them.
func senders(c *Config, s *snapshot) (all Senders) {
	all.Connections = Connections{
		Live: s.in.Connections, Max: c.Limits.Connections, Total: s.in.ConnectionsTotal, Faults: s.in.Faults,
	}
	all.Tracers, all.TracersNotShown = shownTracers(c.Sources.Ingest.Tracers())
	all.Doors = map[string]*OnwardDoor{}
	for i := range c.Sources.Doors {
		if d := &c.Sources.Doors[i]; d.IsOn {
			all.Doors[d.Name] = d.status(&s.doors[i])
		}
	}
	all.OTLP = all.Doors["otlp"]
	if said, heard := c.Sources.OTLP.Said(); heard {
		all.SDKs = &said
	}
	if c.Sources.APM != nil {
		all.APM = &APM{
			Door: all.Doors["apm"].Door, Statistics: s.apm.Merges, Other: s.apm.Other, Failed: s.apm.Failed,
		}
	}
	return all
}

// status is what /status says of one that is on.
func (d *DoorSource) status(s *receiver.Status) *OnwardDoor {
	status := &OnwardDoor{
		Brings: d.Brings,
		Door: Door{
			Requests: s.Requests, Origins: s.Origins, BufferedBytes: s.BufferedBytes,
			Connections: Bounded{Live: s.Connections, Max: d.MaxConnections}, Refused: s.Refused,
			LastHeard: s.LastHeard,
		},
		Forwarded:      s.Forwarded,
		RefusedSignals: s.RefusedSignals,
	}
	if d.Forward != "" {
		status.Forward = &Forward{URL: d.Forward, State: export.Takes}
	}
	if refusal := s.Refusal; d.Forward != "" && refusal != nil {
		status.Forward.State, status.Forward.Said = export.Silent, refusal.Said
		if refusal.Answered {
			status.Forward.State = export.Answers
		}
	}
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

// DoorSource is a door whose statistics are shown. One that is off has metrics at 0.
type DoorSource struct {
	Name           string // the first word of its flags, and of its metrics
	Brings         string // what comes by it, in words
	IsOn           bool
	MaxConnections int
	Forward        string // the URL that its requests go on to, "" for none
	Of             interface {
		Status() receiver.Status
		Unreachable() error // of one that is on
	}
}
