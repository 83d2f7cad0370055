package daemon

import (
	"fmt"

	"github.com/spanstatsd/spanstatsd/internal/aggregate"
	"github.com/spanstatsd/spanstatsd/internal/apm"
	"github.com/spanstatsd/spanstatsd/internal/flush"
	"github.com/spanstatsd/spanstatsd/internal/memory"
)

// programBytes is what the process takes before anything is connected: the
// program, the runtime, the metrics, and their garbage.
const programBytes = 16 << 20

// payloadOfSketch is how many bytes the encoding of a sketch's page may come to
// for each of the page, twice, because a group is written first by itself. But a
// payload is shipped as soon as it is full, so no more than one is being made, in a
// buffer that grows by doubling.
const payloadOfSketch = 2 * 4

// Memory is what the limits of a configuration may come to in the worst case.
func (c *Config) Memory() memory.Budget {
	counting := c.counting()
	encoding := min(payloadOfSketch*c.Aggregate.SketchBytes+2*c.Aggregate.LabelBytes, 3*flush.DefaultMaxPayloadBytes)
	traces := c.traces()
	publisher := c.Admit.PublisherBytes(c.Aggregate.Drainers)
	return memory.Sum(c.Ingest.Memory(publisher), counting.Memory(), traces.Memory(publisher), []memory.Part{
		{Name: "keys of connections", Bytes: int64(c.Admit.MaxKeyBytesInAll), Flag: "max-key-bytes-in-all"},
		{Name: "payloads being made", Bytes: int64(encoding), Flag: "sketch-bytes"},
		{Name: "payloads that wait", Bytes: int64(c.Flush.RetryBytes), Flag: "retry-bytes"},
		{Name: "the program itself", Bytes: programBytes},
	})
}

// counting is the aggregates' configuration: tracers that compute their statistics
// send them where they send their traces.
func (c *Config) counting() aggregate.Config {
	counting := c.Aggregate
	counting.Merge = c.APM.Enabled()
	return counting
}

// checkMemory refuses what can't fit, before anything is made.
func (c *Config) checkMemory() error {
	if err := c.Memory().Check(c.MemoryLimit); err != nil {
		return fmt.Errorf("check memory: %w", err)
	}
	return nil
}

// traces is the configuration of the agent's API towards tracers: it needs no more
// origins than an interval has room for.
func (c *Config) traces() apm.Config {
	traces := c.APM
	traces.MaxOrigins = c.Aggregate.MaxOrigins
	return traces
}
