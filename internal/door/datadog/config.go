package datadog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/check"
	"github.com/spanstatsd/spanstatsd/internal/decode/clientstats"
	"github.com/spanstatsd/spanstatsd/internal/door"
	"github.com/spanstatsd/spanstatsd/internal/door/bodies"
	"github.com/spanstatsd/spanstatsd/internal/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spanstatsd/spanstatsd/internal/socket"
	"github.com/spanstatsd/spanstatsd/internal/traces"
)

// Agent is where the real agent listens, in the form that a dialler takes.
type Agent struct{ Network, Address string }

// host is its name in a request.
func (a Agent) host() string {
	if a.Network == "unix" {
		return "localhost" // a socket has no name
	}
	return a.Address
}

// dial connects to it.
func (a Agent) dial(ctx context.Context) (net.Conn, error) {
	return (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, a.Network, a.Address)
}

// dialTimeout is how long an agent may take to accept a connection.
const dialTimeout = 5 * time.Second

// Features is what the agent wants counted.
type Features struct {
	Stats           bool
	PeerTags        []string
	SpanKinds       []string
	IgnoreResources []string
	FiltersTags     bool // it leaves out traces by their roots' tags
	DropsP0s        bool // it needs no traces that sampling threw away
}

// Config is what this room may use.
type Config struct {
	Socket    socket.Config // an empty path: none
	Addr      string        // empty: none
	Given     net.Listener  // of Addr, where a service manager made it
	AllowUIDs []uint32
	// MaxConnections is how many tracers may be connected at a time.
	MaxConnections int
	MaxBody        int // bytes of a body that is counted
	MaxBodyBytes   int // of all bodies at a time
	MaxOrigins     int // that an interval has room for, and that are remembered
	Counters       int // bodies counted at a time
	DropUnsampled  Dropping
	Labels         traces.Labels
	Exemplars      *exemplars.Table // of spans whose traces went on, which is its owner's; nil: nobody wants any
	// Buffer is how long a request with traces waits for an agent that is away.
	Buffer time.Duration
	Agent  Agent
	Admit  *admit.Publishers
	// Features returns what the agent wants and a channel that is closed when
	// that changes.
	Features func() (Features, <-chan struct{})
	Log      *slog.Logger
}

// DefaultConfig is the defaults of the command line: it listens nowhere. The agent itself
// takes bodies of 25 MiB.
func DefaultConfig() Config {
	return Config{
		Buffer: defaultBuffer, MaxConnections: 512, MaxBody: 25 << 20, MaxBodyBytes: 64 << 20,
		MaxOrigins: door.MaxPublishers, Counters: min(maxCounters, runtime.GOMAXPROCS(0)),
	}
}

// maxCounters is more than a program is fed with that counts millions of spans a second
// with each.
const maxCounters = 8

// defaultBuffer is shorter than any tracer waits for an answer, which is 2 s at least: a
// tracer that gives up sends again, and then two requests with the same traces wait.
const defaultBuffer = 1500 * time.Millisecond

// maxBuffer is far beyond what any tracer waits for an answer.
const maxBuffer = time.Minute

// Enabled says whether there is anything to listen on.
func (c *Config) Enabled() bool { return c.Socket.Path != "" || c.Addr != "" }

// Check says everything that is unusable.
func (c *Config) Check() (err error) {
	if c.Socket.Path != "" {
		err = c.Socket.Check("apm-socket")
	}
	if c.Addr != "" {
		err = errors.Join(err, check.Address("apm-addr", c.Addr))
	}
	if c.MaxBodyBytes < c.MaxBody {
		err = errors.Join(err, fmt.Errorf("check apm-max-body-bytes: %s is less than the %s of one body",
			memory.SizeText(c.MaxBodyBytes), memory.SizeText(c.MaxBody)))
	}
	if c.Agent.Network == "unix" && c.Agent.Address == c.Socket.Path {
		err = errors.Join(err, fmt.Errorf("check apm-socket: %s is the agent's own socket; choose another one", c.Socket.Path))
	}
	return errors.Join(err, c.Labels.Check(),
		check.Number("apm-max-connections", c.MaxConnections, 1, 1<<20),
		check.Number("apm-counters", c.Counters, 1, 1<<10),
		check.Size("apm-max-body", c.MaxBody, bodies.FirstBuffer, 1<<30),
		check.AtMost("apm-max-body-bytes", c.MaxBodyBytes, memory.MostBytes),
		check.Time("apm-buffer", c.Buffer, 0, maxBuffer),
	)
}

// Memory is the most that this room may come to use where it is on: what its limits
// add up to. publisher is what an origin takes to be published.
func (c *Config) Memory(publisher int) []memory.Part {
	if !c.Enabled() {
		return nil
	}
	counting := traces.CounterBytes(c.MaxBody, c.Exemplars != nil) + traces.MaxSpans(c.MaxBody)*admit.SpanBytes // and publishing
	return []memory.Part{
		{Name: "bodies of traces", Bytes: int64(c.MaxBodyBytes), Flag: "apm-max-body-bytes"},
		{Name: "counting of traces", Bytes: int64(c.Counters) * int64(counting), Flag: "apm-max-body"},
		{Name: "statistics that are read", Bytes: int64(clientstats.Bytes(c.MaxBody)), Flag: "apm-max-body"},
		{Name: "connections with traces", Bytes: int64(c.MaxConnections) * connectionBytes, Flag: "apm-max-connections"},
		{Name: "origins of traces", Bytes: int64(c.publishers()) * int64(publisher), Flag: "max-origins"},
	}
}

// publishers bounds the origins that are remembered. One body may need them all.
func (c *Config) publishers() int {
	return max(traces.MaxBatches, min(door.MaxPublishers, c.MaxOrigins))
}

// connectionBytes is about what a connection takes in the midst of a request, with one
// to the agent: six goroutines, their buffers, and a header as long as can be.
const connectionBytes = 160 << 10
