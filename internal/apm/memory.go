package apm

import (
	"unsafe"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/memory"
)

// Memory is the most that this room may come to use where it is on: what its limits
// add up to. publisher is what ingest takes for an origin.
func (c *Config) Memory(publisher int) []memory.Part {
	if !c.Enabled() {
		return nil
	}
	return []memory.Part{
		{Name: "bodies of traces", Bytes: int64(c.MaxBodyBytes), Flag: "apm-max-body-bytes"},
		{Name: "counting of traces", Bytes: int64(c.Counters) * int64(counterBytes(c.MaxBody)), Flag: "apm-max-body"},
		{Name: "statistics that are read", Bytes: int64(groupsBytes(c.MaxBody)), Flag: "apm-max-body"},
		{Name: "connections with traces", Bytes: int64(c.MaxConnections) * connectionBytes, Flag: "apm-max-connections"},
		{Name: "origins of traces", Bytes: int64(c.publishers()) * int64(publisher), Flag: "max-origins"},
	}
}

// publishers bounds the origins that are remembered. One body may need them all.
func (c *Config) publishers() int { return max(maxBatches, min(maxPublishers, c.MaxOrigins)) }

// connectionBytes is about what a connection takes in the midst of a request, with one
// to the agent: six goroutines, their buffers, and a header as long as can be.
const connectionBytes = 160 << 10

// mostGroups is to a payload of statistics what most is to a body of traces.
type mostGroups struct{ groups, texts, bins int }

func mostGroupsOf(body int) mostGroups {
	return mostGroups{
		groups: min(maxGroups, 64+body/128), texts: min(maxTexts, 1<<10+body/16), bins: min(maxBins, 1<<12+body/8),
	}
}

// groupsBytes is the most that reading statistics takes for bodies of that length.
func groupsBytes(body int) int {
	m := mostGroupsOf(body)
	return int(grown * float64(m.groups*int(unsafe.Sizeof(aggregate.Group{}))+
		m.texts*int(unsafe.Sizeof(""))+m.bins*int(unsafe.Sizeof(aggregate.Bin{}))))
}
