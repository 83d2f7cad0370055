package ingest

import (
	"cmp"
	"slices"
	"time"
)

// Tracer is what status says of one connection that has said hello.
type Tracer struct {
	Client    string    `json:"client"`
	Service   string    `json:"service"`
	Env       string    `json:"env"`
	Lang      string    `json:"lang"`
	Container string    `json:"container"`
	UID       uint32    `json:"uid"`
	PID       int32     `json:"pid"`
	Since     time.Time `json:"since"`
	Received  uint64    `json:"received"`
	Dropped   uint64    `json:"dropped"` // of those received
	Lost      uint64    `json:"lost"`    // that never got here, as it reports
}

// Tracers are those connected now, the longest first.
func (s *Server) Tracers() []Tracer {
	tracers := []Tracer{}
	for _, c := range s.connections() {
		if known := c.tracer.Load(); known != nil {
			tracer := *known
			tracer.Dropped, tracer.Lost = c.publisher.Dropped(), c.lost.Load()
			tracer.Received = c.publisher.Received()
			tracers = append(tracers, tracer)
		}
	}
	slices.SortFunc(tracers, func(a, b Tracer) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.PID, b.PID))
	})
	return tracers
}
