package health

import (
	"cmp"
	"slices"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/door"
	"github.com/spanstatsd/spanstatsd/internal/door/otlp"
	"github.com/spanstatsd/spanstatsd/internal/flush"
	"github.com/spanstatsd/spanstatsd/internal/ingest"
)

// Senders are who hands spans over.
type Senders struct {
	Connections     Connections     `json:"connections"`
	Tracers         []ingest.Tracer `json:"tracers"`
	TracersNotShown int             `json:"tracers_not_shown"`
	APM             *APM            `json:"apm,omitempty"`  // where it is on
	OTLP            *OTLP           `json:"otlp,omitempty"` // the same
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
	Other  uint64 `json:"other"`  // requests of any other kind
	Failed uint64 `json:"failed"` // that the agent did not answer
}

// OTLP is what takes OTLP of SDKs.
type OTLP struct {
	Door
	Forwarded map[string]uint64 `json:"forwarded"` // requests that were to go on, by what became of them
	Forward   *Forward          `json:"forward,omitempty"`
}

// Forward is where OTLP goes on to.
type Forward struct {
	URL   string      `json:"url"`
	State flush.State `json:"state"`
	Said  string      `json:"said,omitempty"` // why it did not take the last request
}

// forward is what status says of a destination of OTLP, nil where there is none.
func forward(url string, last *otlp.Refusal) *Forward {
	switch {
	case url == "":
		return nil
	case last == nil:
		return &Forward{url, flush.Takes, ""}
	case last.Answered:
		return &Forward{url, flush.Answers, last.Said}
	}
	return &Forward{url, flush.Silent, last.Said}
}

func doorStatus(s door.Stats, requests map[string]uint64, most int) Door {
	return Door{requests, s.Origins, s.BufferedBytes, Bounded{s.Connections, most}, s.Refused, s.LastHeard}
}

// senders are all of them.
func senders(c *Config, l *look) (all Senders) {
	all.Connections = Connections{
		l.in.Connections, c.Limits.Connections, l.in.ConnectionsTotal, l.in.Faults,
	}
	all.Tracers, all.TracersNotShown = shownTracers(c.Sources.Ingest.Tracers())
	if c.Sources.APM != nil {
		now := c.Sources.APM.Stats()
		all.APM = &APM{
			doorStatus(now.Stats, now.Requests, c.Limits.APMConnections), now.Other, now.Failed,
		}
	}
	if c.Sources.OTLP != nil {
		now := c.Sources.OTLP.Stats()
		all.OTLP = &OTLP{
			doorStatus(now.Stats, now.Requests, c.Limits.OTLPConnections), now.Forwarded,
			forward(c.OTLPForward, now.Refusal),
		}
	}
	return all
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
