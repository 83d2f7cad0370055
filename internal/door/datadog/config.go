package datadog

import (
	"errors"
	"fmt"
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

// How long a tracer may take: to send a body, which is the agent's own time; to read a piece of an
// answer that does not fit into its socket's buffer; and to send another request.
const (
	readTimeout     = 5 * time.Second
	writeTimeout    = 30 * time.Second
	betweenRequests = time.Minute
)

// Forwards is the most connections that are open to the agent: one a request, of which a
// tracer's connection has one at a time, those kept, and as many kept for what streams.
func (c *Config) Forwards() int { return c.MaxConnections + 2*http1.MaxKept }

// Config is what this door may use.
type Config struct {
	door.Config
	DropUnsampled Dropping
	Labels        rules.Labels
	Agent         door.Behind
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
		c.Publishers(rules.MaxBaseServices)*publisher)
	return slices.Insert(parts, 2, memory.Part{
		Name: "statistics that are read", Bytes: int64(clientstats.Bytes(c.MaxBody)), Flag: "apm-max-body",
	})
}

// connectionBytes is about what a connection takes in the midst of a request, with one
// to the agent: six goroutines, their buffers, and a header as long as can be.
const connectionBytes = 160 << 10
