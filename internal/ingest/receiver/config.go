package receiver

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/aggregate/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/check"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver/bodies"
	"github.com/spanstatsd/spanstatsd/internal/ingest/socket"
	"github.com/spanstatsd/spanstatsd/internal/memory"
)

// Config is the operator's configuration that all receivers have.
type Config struct {
	Socket         socket.Config // an empty path: none
	Addr           string        // empty: none
	Given          net.Listener  // on Addr, from the service manager; nil: none
	AllowUIDs      []uint32
	MaxConnections int              // at a time
	MaxBody        int              // bytes of a buffered body
	MaxBodyBytes   int              // bytes of all bodies at a time
	MaxOrigins     int              // of an interval
	Counters       int              // bodies counted at a time
	Buffer         time.Duration    // how long a request waits for an unreachable upstream
	Exemplars      *exemplars.Table // of forwarded spans; nil: none
	// Features returns what the agent wants and a channel that is closed when that changes.
	Features func() (Features, <-chan struct{})
	Admit    *admit.Publishers
	// OnAck is called with spans of a cycle whose sender is about to get a response: from then on only
	// this daemon has them. It may be nil.
	OnAck func(cycle, spans uint64)
	Log   *slog.Logger
}

// Features is what the agent wants, for the receivers that follow its rules.
type Features struct {
	Stats           bool
	PeerTags        []string
	SpanKinds       []string
	IgnoreResources []string
	FiltersTags     bool // it leaves out traces by tags of their roots, which only it can do
	DropsP0s        bool // it does not need traces that sampling dropped
}

// DefaultConfig returns the defaults that all receivers share. They listen nowhere.
func DefaultConfig() Config {
	return Config{MaxOrigins: MaxPublishers, Counters: min(maxCounters, runtime.GOMAXPROCS(0))}
}

const (
	// maxCounters suffices for any load: each counts millions of spans per second.
	maxCounters = 8
	// maxBuffer is far longer than any sender waits for a response.
	maxBuffer = time.Minute
)

// Enabled reports whether there is anything to listen on.
func (c *Config) Enabled() bool { return c.Socket.Path != "" || c.Addr != "" }

// Check returns all that is unusable. The names of the flags begin with a prefix.
func (c *Config) Check(flags string) (err error) {
	if c.Socket.Path != "" {
		err = c.Socket.Check(flags + "-socket")
	}
	if c.Addr != "" {
		err = errors.Join(err, check.Address(flags+"-addr", c.Addr))
	}
	if c.MaxBodyBytes < c.MaxBody {
		err = errors.Join(err, fmt.Errorf("check %s-max-body-bytes: %s is less than the %s of one body; "+
			"raise it, or lower --%[1]s-max-body",
			flags, memory.SizeText(c.MaxBodyBytes), memory.SizeText(c.MaxBody)))
	}
	return errors.Join(
		err,
		check.Number(flags+"-max-connections", c.MaxConnections, 1, 1<<20),
		check.Number(flags+"-counters", c.Counters, 1, 1<<10),
		check.Size(flags+"-max-body", c.MaxBody, bodies.FirstBuffer, 1<<30),
		check.AtMost(flags+"-max-body-bytes", c.MaxBodyBytes, memory.MostBytes),
		check.Time(flags+"-buffer", c.Buffer, 0, maxBuffer),
	)
}

// LeastBodyBytes returns the least limit of all bodies with which one can be buffered.
func (c *Config) LeastBodyBytes() int { return c.MaxBody }

// Publishers returns the maximum number of publishers. One body may need so many.
func (c *Config) Publishers(batches int) int {
	return max(batches, min(MaxPublishers, c.MaxOrigins))
}

// Memory returns the sum of the limits of a receiver. counting is the memory for counting one body,
// connection for one connection, and origins for all publishers.
func (c *Config) Memory(flags, brings string, counting, connection, origins int) []memory.Part {
	part := func(what string, bytes int, flag string) memory.Part {
		return memory.Part{Name: what + brings, Bytes: int64(bytes), Flag: flag}
	}
	return []memory.Part{
		part("bodies of ", c.MaxBodyBytes, flags+"-max-body-bytes"),
		part("counting of ", c.Counters*counting, flags+"-max-body"),
		part("connections with ", c.MaxConnections*connection, flags+"-max-connections"),
		part("origins of ", origins, "max-origins"),
	}
}
