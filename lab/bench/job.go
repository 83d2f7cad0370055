package bench

import (
	"time"

	"github.com/spanstatsd/spanstatsd/client"
)

// job is the work of one tracer process. Connections in its Config are those of this process;
// Spans and Rate are per connection.
type job struct {
	Config
	First         int    // number of its first connection, counted over all processes
	All           int    // connections of all processes
	Burst         uint64 // spans per burst and connection; 0: no bursts
	ComputesStats bool   // mark requests with traces as already counted
	OneClient     bool   // its connections are goroutines that publish through one client

	shared []message      // encoded messages shared by its wire tracers
	client *client.Client // shared by its client tracers if OneClient is set
}

// result is what a tracer process did.
type result struct {
	Error     string            `json:"error,omitempty"`
	Attempted uint64            `json:"attempted"` // spans generated
	Handed    uint64            `json:"handed"`    // spans written to the socket
	Refused   map[string]uint64 `json:"refused"`   // spans refused, by the client's reasons
	CPU       time.Duration     `json:"cpu"`
	Publish   *latencies        `json:"publish"` // durations of publish calls
}

func newResult() result { return result{Refused: map[string]uint64{}, Publish: newLatencies()} }

func (r *result) did() *result { return r }

func (r *result) merge(other *result) {
	r.Attempted += other.Attempted
	r.Handed += other.Handed
	r.CPU += other.CPU
	if other.Publish != nil { // nil if the process failed before it wrote its result
		r.Publish.merge(other.Publish)
	}
	for reason, spans := range other.Refused {
		r.Refused[reason] += spans
	}
}
