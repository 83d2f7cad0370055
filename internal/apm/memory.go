package apm

import (
	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/clientstats"
	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spanstatsd/spanstatsd/internal/traces"
)

// Memory is the most that this room may come to use where it is on: what its limits
// add up to. publisher is what an origin takes to be published.
func (c *Config) Memory(publisher int) []memory.Part {
	if !c.Enabled() {
		return nil
	}
	counting := traces.CounterBytes(c.MaxBody) + traces.MaxSpans(c.MaxBody)*admit.SpanBytes // and publishing
	return []memory.Part{
		{Name: "bodies of traces", Bytes: int64(c.MaxBodyBytes), Flag: "apm-max-body-bytes"},
		{Name: "counting of traces", Bytes: int64(c.Counters) * int64(counting), Flag: "apm-max-body"},
		{Name: "statistics that are read", Bytes: int64(clientstats.Bytes(c.MaxBody)), Flag: "apm-max-body"},
		{Name: "connections with traces", Bytes: int64(c.MaxConnections) * connectionBytes, Flag: "apm-max-connections"},
		{Name: "origins of traces", Bytes: int64(c.publishers()) * int64(publisher), Flag: "max-origins"},
	}
}

// publishers bounds the origins that are remembered. One body may need them all.
func (c *Config) publishers() int { return max(traces.MaxBatches, min(maxPublishers, c.MaxOrigins)) }

// connectionBytes is about what a connection takes in the midst of a request, with one
// to the agent: six goroutines, their buffers, and a header as long as can be.
const connectionBytes = 160 << 10
