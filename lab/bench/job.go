package bench

import (
	"time"

	"github.com/spanstatsd/spanstatsd/client"
)

// job is what one tracer's process is told to do. Of its Config, Connections are its own,
// and Spans and Rate are of one connection.
type job struct {
	Config
	First         int    // number of its first connection among all
	All           int    // connections of all tracers
	Burst         uint64 // spans of a connection's burst; 0: none
	ComputesStats bool   // requests with traces are marked as counted
	OneClient     bool   // its connections are goroutines that publish through one client

	shared []message      // encoded for all of its wire tracers
	client *client.Client // of all of its client tracers, where it is one
}

// result is what it did.
type result struct {
	Error     string            `json:"error,omitempty"`
	Attempted uint64            `json:"attempted"` // spans that it had
	Handed    uint64            `json:"handed"`    // spans that the socket took
	Refused   map[string]uint64 `json:"refused"`   // the others, by the client's reasons
	CPU       time.Duration     `json:"cpu"`
	Publish   *latencies        `json:"publish"` // what handing a batch over took
}

func newResult() result { return result{Refused: map[string]uint64{}, Publish: newLatencies()} }

func (r *result) did() *result { return r }

func (r *result) merge(other *result) {
	r.Attempted += other.Attempted
	r.Handed += other.Handed
	r.CPU += other.CPU
	if other.Publish != nil { // else it ended before it could say what it did
		r.Publish.merge(other.Publish)
	}
	for reason, spans := range other.Refused {
		r.Refused[reason] += spans
	}
}
