package datadog

import (
	"errors"
	"fmt"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/decode/clientstats"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver"
	"github.com/spanstatsd/spanstatsd/internal/memory"
	rules "github.com/spanstatsd/spanstatsd/internal/rules/datadog"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// The timeouts of receiver.Setup.
const (
	// readTimeout is the timeout for a header, and for a body. It is the agent's own.
	readTimeout  = 5 * time.Second
	writeTimeout = 30 * time.Second
	idleTimeout  = time.Minute
	// forwardTimeout is the timeout for the agent's response to a buffered request. It is longer than any tracer waits.
	// It is needed if an agent hangs and the tracer has disconnected after a pipelined request: net/http does not
	// notice the end of such a connection.
	forwardTimeout = 30 * time.Second
)

// MaxUpstreamConnections returns the maximum number of connections to the agent: one for each connection of a tracer,
// which has at most one request in flight, and the idle ones.
func (c *Config) MaxUpstreamConnections() int {
	const transports = 2 // for buffered and for streamed requests
	return c.MaxConnections + transports*receiver.MaxIdle
}

// Config is the configuration of the receiver.
type Config struct {
	receiver.Config
	DropUnsampled Dropping
	Labels        rules.Labels
	Agent         receiver.Upstream
}

// DefaultConfig returns the defaults of the command line. They contain no listen address. MaxBody is the agent's own.
func DefaultConfig() Config {
	c := Config{Config: receiver.DefaultConfig()}
	c.Buffer, c.MaxConnections, c.MaxBody, c.MaxBodyBytes = defaultBuffer, 512, 25<<20, 64<<20
	c.DropUnsampled = DropAuto
	return c
}

// defaultBuffer is the default of --apm-buffer. It is less than the shortest timeout of a tracer, 2 s. A tracer retries
// after its timeout, so that two requests with the same traces would wait for the agent.
const defaultBuffer = 1500 * time.Millisecond

// Fields of receiver.Setup.
const (
	flagPrefix   = "apm"
	receivedData = "traces"
)

// Check returns the joined errors of all invalid settings. It also rejects the agent's own socket as the listen address.
func (c *Config) Check() error {
	err := errors.Join(c.Config.Check(flagPrefix), c.Labels.Check())
	isAgentSocket := c.Agent.Network == "unix" && c.Agent.Address == c.Socket.Path
	if isAgentSocket {
		err = errors.Join(err, fmt.Errorf(
			"check apm-socket: %s is the agent's own socket; choose another one", c.Socket.Path,
		))
	}
	return err
}

// Memory returns the maximum memory of the Datadog receiver, one part for each purpose, or nil if the receiver is
// disabled. publisherBytes is the size of one admit.Publisher.
func (c *Config) Memory(publisherBytes int) []memory.Part {
	if !c.Enabled() {
		return nil
	}
	decodingBytes := rules.CounterBytes(c.MaxBody, c.Exemplars != nil)
	publishingBytes := spantable.MaxSpans(c.MaxBody) * admit.SpanBytes
	parts := c.Config.Memory(flagPrefix, receivedData, receiver.MemorySizes{
		Counting:   decodingBytes + publishingBytes,
		Connection: connectionBytes,
		Publishers: c.Publishers(rules.MaxBaseServices) * publisherBytes,
	})
	return append(parts, memory.Part{
		Name: "statistics that are read", Bytes: int64(clientstats.Bytes(c.MaxBody)), Flag: "apm-max-body",
	})
}

// connectionBytes is the approximate memory of a connection during a request, including the connection to the agent: six
// goroutines, their buffers, and a header of maximum length.
const connectionBytes = 160 << 10

// Dropping selects whether unsampled traces are dropped after they are counted, instead of being forwarded.
type Dropping string

const (
	DropAuto Dropping = "auto" // drop them if the agent has the feature client_drop_p0s
	DropOn   Dropping = "on"   // always drop them
	DropOff  Dropping = "off"  // always forward them
)

// drops reports whether unsampled traces are dropped. hasDropP0s reports whether the agent has client_drop_p0s.
func (d Dropping) drops(hasDropP0s bool) bool { return d == DropOn || d == DropAuto && hasDropP0s }
