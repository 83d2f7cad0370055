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

// How long a tracer may take: to send a body (the agent's own limit), to read a piece of a response that
// does not fit into its socket's buffer, and to send another request; and the agent to answer a buffered
// request, which is longer than any tracer waits. Without that limit a tracer that has left could hold a
// connection as long as an agent hangs: net/http does not notice the end of a connection behind a
// pipelined request.
const (
	readTimeout     = 5 * time.Second
	writeTimeout    = 30 * time.Second
	betweenRequests = time.Minute
	forwardTimeout  = 30 * time.Second
)

// Forwards returns the maximum number of connections to the agent: one per request, of which a tracer's
// connection has one at a time, and idle ones of two transports.
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

// defaultBuffer is shorter than any tracer waits for a response, which is at least 2 s: a tracer that
// gives up retries, and then two requests with the same traces wait.
const defaultBuffer = 1500 * time.Millisecond

// flags is the prefix of the flags, brings the name of the received data.
const (
	flags  = "apm"
	brings = "traces"
)

// Check returns all that is unusable.
func (c *Config) Check() error {
	err := errors.Join(c.Config.Check(flags), c.Labels.Check())
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
	// and publishing
	counting := rules.CounterBytes(c.MaxBody, c.Exemplars != nil) +
		spantable.MaxSpans(c.MaxBody)*admit.SpanBytes
	parts := c.Config.Memory(flags, brings, counting, connectionBytes,
		c.Publishers(rules.MaxBaseServices)*publisher)
	return slices.Insert(parts, 2, memory.Part{
		Name: "statistics that are read", Bytes: int64(clientstats.Bytes(c.MaxBody)), Flag: "apm-max-body",
	})
}

// connectionBytes is about the memory of a connection in the midst of a request, with a connection to the
// agent: six goroutines, their buffers, and a header of the maximum length.
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
