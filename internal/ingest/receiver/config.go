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
	Socket         socket.Config // no Unix socket if its path is empty
	Addr           string        // no TCP address if it is empty
	Given          net.Listener  // listens on Addr, from the service manager; nil: none
	AllowUIDs      []uint32      // users that may connect to the socket; nil: all
	MaxConnections int
	MaxBody        int              // bytes of one buffered body
	MaxBodyBytes   int              // bytes of all buffered bodies together
	MaxOrigins     int              // per interval
	Counters       int              // bodies that are counted at the same time
	Buffer         time.Duration    // how long a request waits for an unreachable upstream
	Exemplars      *exemplars.Table // for forwarded spans; nil: none
	// Features returns the agent's features and a channel that is closed when they change.
	Features func() (Features, <-chan struct{})
	Admit    *admit.Publishers
	// OnAck is called before a sender gets its response, with the number of its spans that were counted in
	// a cycle: from then on only this daemon has them. It may be nil.
	OnAck func(cycle, spans uint64)
	Log   *slog.Logger
}

// Features are the agent's features, for the receivers that follow its rules.
type Features struct {
	Stats           bool // it accepts statistics
	PeerTags        []string
	SpanKinds       []string
	IgnoreResources []string
	FiltersTags     bool // it leaves out traces by tags of their roots, which only it can do
	DropsP0s        bool // it does not need unsampled traces
}

// DefaultConfig returns the defaults that all receivers share, without a listener.
func DefaultConfig() Config {
	return Config{MaxOrigins: MaxPublishers, Counters: min(maxCounters, runtime.GOMAXPROCS(0))}
}

const (
	// maxCounters is enough for any load, because each counts millions of spans per second.
	maxCounters = 8
	// maxBuffer is much longer than any sender waits for a response.
	maxBuffer = time.Minute
)

// Enabled reports whether the receiver listens anywhere.
func (c *Config) Enabled() bool { return c.Socket.Path != "" || c.Addr != "" }

// Check returns all invalid values. The names of the flags begin with a prefix.
func (c *Config) Check(flagPrefix string) (err error) {
	if c.Socket.Path != "" {
		err = c.Socket.Check(flagPrefix + "-socket")
	}
	if c.Addr != "" {
		err = errors.Join(err, check.Address(flagPrefix+"-addr", c.Addr))
	}
	if c.MaxBodyBytes < c.MaxBody {
		err = errors.Join(err, fmt.Errorf("check %s-max-body-bytes: %s is less than the %s of one body; "+
			"raise it, or lower --%[1]s-max-body",
			flagPrefix, memory.SizeText(c.MaxBodyBytes), memory.SizeText(c.MaxBody)))
	}
	return errors.Join(
		err,
		check.Number(flagPrefix+"-max-connections", c.MaxConnections, 1, 1<<20),
		check.Number(flagPrefix+"-counters", c.Counters, 1, 1<<10),
		check.Size(flagPrefix+"-max-body", c.MaxBody, bodies.FirstBuffer, 1<<30),
		check.AtMost(flagPrefix+"-max-body-bytes", c.MaxBodyBytes, memory.MostBytes),
		check.Time(flagPrefix+"-buffer", c.Buffer, 0, maxBuffer),
	)
}

// LeastBodyBytes returns the least MaxBodyBytes with which a body of MaxBody can be buffered.
func (c *Config) LeastBodyBytes() int { return c.MaxBody }

// Publishers returns the maximum number of publishers, if a body has at most maxBatches batches.
func (c *Config) Publishers(maxBatches int) int {
	return max(maxBatches, min(MaxPublishers, c.MaxOrigins))
}

// Memory returns the memory limits of a receiver. counting is the memory for counting one body,
// connection the one of a connection, and origins the one of all publishers.
func (c *Config) Memory(flagPrefix, data string, counting, connection, origins int) []memory.Part {
	part := func(what string, bytes int, flag string) memory.Part {
		return memory.Part{Name: what + data, Bytes: int64(bytes), Flag: flag}
	}
	return []memory.Part{
		part("bodies of ", c.MaxBodyBytes, flagPrefix+"-max-body-bytes"),
		part("counting of ", c.Counters*counting, flagPrefix+"-max-body"),
		part("connections with ", c.MaxConnections*connection, flagPrefix+"-max-connections"),
		part("origins of ", origins, "max-origins"),
	}
}
