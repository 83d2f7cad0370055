package datadog

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/decode/clientstats"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver"
	"github.com/spanstatsd/spanstatsd/internal/memory"
	rules "github.com/spanstatsd/spanstatsd/internal/rules/datadog"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// The timeouts of receiver.Setup. readTimeout, for a header and for a body, is the agent's own.
//
// forwardTimeout is the one for the agent's response to a buffered request. It is longer than any tracer
// waits. Without it a tracer that has left could hold a connection while an agent hangs, because net/http
// does not notice that a connection has ended if a pipelined request is waiting in it.
const (
	readTimeout    = 5 * time.Second
	writeTimeout   = 30 * time.Second
	idleTimeout    = time.Minute
	forwardTimeout = 30 * time.Second
)

// Forwards returns the maximum number of connections to the agent: one per connection of a tracer, which
// has one request in flight, and the idle ones of two transports.
func (c *Config) Forwards() int { return c.MaxConnections + 2*receiver.MaxIdle }

// Config is the configuration of the receiver.
type Config struct {
	receiver.Config
	DropUnsampled Dropping
	Labels        rules.Labels
	Agent         receiver.Upstream
}

// DefaultConfig returns the defaults of the command line, which listen nowhere. The agent itself
// accepts bodies of 25 MiB.
func DefaultConfig() Config {
	c := Config{Config: receiver.DefaultConfig()}
	c.Buffer, c.MaxConnections, c.MaxBody, c.MaxBodyBytes = defaultBuffer, 512, 25<<20, 64<<20
	c.DropUnsampled = DropAuto
	return c
}

// defaultBuffer is shorter than the shortest timeout of a tracer, which is 2 s. After its timeout a tracer
// retries, and then two requests with the same traces would wait.
const defaultBuffer = 1500 * time.Millisecond

// flagPrefix and data are those of receiver.Setup.
const (
	flagPrefix = "apm"
	data       = "traces"
)

// Check returns all invalid values.
func (c *Config) Check() error {
	err := errors.Join(c.Config.Check(flagPrefix), c.Labels.Check())
	if c.Agent.Network == "unix" && c.Agent.Address == c.Socket.Path {
		err = errors.Join(err, fmt.Errorf(
			"check apm-socket: %s is the agent's own socket; choose another one", c.Socket.Path,
		))
	}
	return err
}

// Memory returns the memory limit of the receiver if it is on. publisher is the memory per origin.
func (c *Config) Memory(publisher int) []memory.Part {
	if !c.Enabled() {
		return nil
	}
	publishing := spantable.MaxSpans(c.MaxBody) * admit.SpanBytes
	counting := rules.CounterBytes(c.MaxBody, c.Exemplars != nil) + publishing
	parts := c.Config.Memory(flagPrefix, data, counting, connectionBytes,
		c.Publishers(rules.MaxBaseServices)*publisher)
	return slices.Insert(parts, 2, memory.Part{
		Name: "statistics that are read", Bytes: int64(clientstats.Bytes(c.MaxBody)), Flag: "apm-max-body",
	})
}

// connectionBytes is about the memory of a connection during a request, including a connection to the agent:
// six goroutines, their buffers, and a header of the maximum length.
const connectionBytes = 160 << 10

// Dropping is whether traces that sampling dropped are forwarded once they are counted.
type Dropping string

const (
	DropAuto Dropping = "auto" // they are not if the agent says that it does without them
	DropOn   Dropping = "on"   // they are not, whatever the agent says
	DropOff  Dropping = "off"
)

// drops returns what that means for an agent that does without such traces, or not.
func (d Dropping) drops(isSpared bool) bool { return d == DropOn || d == DropAuto && isSpared }
