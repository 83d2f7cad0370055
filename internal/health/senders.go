package health

import (
	"cmp"
	"slices"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/flush"
	"github.com/spanstatsd/spanstatsd/internal/ingest"
	"github.com/spanstatsd/spanstatsd/internal/sdkmetrics"
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
	Forward   *Forward          `json:"forward,omitempty"`
}

// Forward is where they go on to.
type Forward struct {
	URL   string      `json:"url"`
	State flush.State `json:"state"`
	Said  string      `json:"said,omitempty"` // why it did not take the last request
}

// senders are all of them.
func senders(c *Config, l *look) (all Senders) {
	all.Connections = Connections{
		l.in.Connections, c.Limits.Connections, l.in.ConnectionsTotal, l.in.Faults,
	}
	all.Tracers, all.TracersNotShown = shownTracers(c.Sources.Ingest.Tracers())
	all.Doors = map[string]*OnwardDoor{}
	for i := range c.Sources.Doors {
		if d := &c.Sources.Doors[i]; d.IsOn {
			all.Doors[d.Name] = d.status()
		}
	}
	all.OTLP = all.Doors["otlp"]
	if said, heard := c.Sources.OTLP.Said(); heard {
		all.SDKs = &said
	}
	if c.Sources.APM != nil {
		now := c.Sources.APM.Stats()
		all.APM = &APM{all.Doors["apm"].Door, now.Merges, now.Other, now.Failed}
	}
	return all
}

// status is what /status says of one that is on.
func (d *DoorSource) status() *OnwardDoor {
	s := d.Of.Shown()
	status := &OnwardDoor{
		Brings: d.Brings,
		Door: Door{
			s.Requests, s.Origins, s.BufferedBytes,
			Bounded{s.Connections, d.MaxConnections},
			s.Refused,
			s.LastHeard,
		},
		Forwarded: s.Forwarded,
	}
	switch {
	case d.Forward == "":
	case s.Refusal == nil:
		status.Forward = &Forward{d.Forward, flush.Takes, ""}
	case s.Refusal.Answered:
		status.Forward = &Forward{d.Forward, flush.Answers, s.Refusal.Said}
	default:
		status.Forward = &Forward{d.Forward, flush.Silent, s.Refusal.Said}
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
