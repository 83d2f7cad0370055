package datadog

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/decode/clientstats"
	"github.com/spanstatsd/spanstatsd/internal/door"
	"github.com/spanstatsd/spanstatsd/internal/door/http1"
	"github.com/spanstatsd/spanstatsd/internal/memory"
	rules "github.com/spanstatsd/spanstatsd/internal/rules/datadog"
	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

// Agent is where the real agent listens, in the form that a dialler takes.
type Agent struct {
	Network, Address string
	reach            func(context.Context) (net.Conn, error) // of tests; nil: by those
}

// host is its name in a request.
func (a Agent) host() string {
	if a.Network == "unix" {
		return "localhost" // a socket has no name
	}
	return a.Address
}

// dial connects to it.
func (a Agent) dial(ctx context.Context) (net.Conn, error) {
	if a.reach != nil {
		return a.reach(ctx)
	}
	return (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, a.Network, a.Address)
}

// dialTimeout is how long an agent may take to accept a connection.
const dialTimeout = 5 * time.Second

// AgentConnections is the most that are open to the agent: one a request, of which a
// tracer's connection has one at a time, those kept, and as many kept for what streams.
func AgentConnections(tracers int) int { return tracers + 2*http1.MaxKept }

// Features is what the agent wants counted.
type Features struct {
	Stats           bool
	PeerTags        []string
	SpanKinds       []string
	IgnoreResources []string
	FiltersTags     bool // it leaves out traces by their roots' tags
	DropsP0s        bool // it needs no traces that sampling threw away
}

// Config is what this door may use.
type Config struct {
	door.Config
	DropUnsampled Dropping
	Labels        rules.Labels
	Agent         Agent
	// Features returns what the agent wants and a channel that is closed when
	// that changes.
	Features func() (Features, <-chan struct{})
}

// DefaultConfig is the defaults of the command line: it listens nowhere. The agent itself
// takes bodies of 25 MiB.
func DefaultConfig() Config {
	c := Config{Config: door.DefaultConfig()}
	c.Buffer, c.MaxConnections, c.MaxBody, c.MaxBodyBytes = defaultBuffer, 512, 25<<20, 64<<20
	return c
}

// defaultBuffer is shorter than any tracer waits for an answer, which is 2 s at least: a
// tracer that gives up sends again, and then two requests with the same traces wait.
const defaultBuffer = 1500 * time.Millisecond

// flags begin with this, and brings is what comes by this door.
const (
	flags  = "apm"
	brings = "traces"
)

// Check says everything that is unusable.
func (c *Config) Check() error {
	err := errors.Join(c.Config.Check(flags), c.Labels.Check())
	if c.Agent.Network == "unix" && c.Agent.Address == c.Socket.Path {
		err = errors.Join(err, fmt.Errorf(
			"check apm-socket: %s is the agent's own socket; choose another one", c.Socket.Path,
		))
	}
	return err
}

// Memory is the most that this door may come to use where it is on: what its limits
// add up to. publisher is what an origin takes to be published.
func (c *Config) Memory(publisher int) []memory.Part {
	if !c.Enabled() {
		return nil
	}
	// and publishing
	counting := rules.CounterBytes(c.MaxBody, c.Exemplars != nil) +
		spantable.MaxSpans(c.MaxBody)*admit.SpanBytes
	parts := c.Config.Memory(flags, brings, counting, connectionBytes,
		c.Publishers(rules.MaxBatches)*publisher)
	return slices.Insert(parts, 2, memory.Part{
		Name: "statistics that are read", Bytes: int64(clientstats.Bytes(c.MaxBody)), Flag: "apm-max-body",
	})
}

// connectionBytes is about what a connection takes in the midst of a request, with one
// to the agent: six goroutines, their buffers, and a header as long as can be.
const connectionBytes = 160 << 10
