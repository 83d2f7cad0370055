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

// Config is the part of a receiver's configuration that the operator sets, and that all receivers have.
type Config struct {
	Socket         socket.Config // Unix socket; none if the path is empty
	Addr           string        // TCP address; none if empty
	Given          net.Listener  // listener for Addr inherited from the service manager; nil to open one
	AllowUIDs      []uint32      // users that may connect to the Unix socket; nil allows all
	MaxConnections int
	MaxBody        int              // maximum bytes of one buffered body
	MaxBodyBytes   int              // maximum bytes of all buffered bodies
	MaxOrigins     int              // maximum number of origins per interval
	Counters       int              // number of bodies that can be counted at the same time
	Buffer         time.Duration    // maximum time that a request waits for an unreachable upstream
	Exemplars      *exemplars.Table // gets forwarded spans as candidates; nil disables exemplars
	// Features returns the agent's features and a channel that is closed when they change.
	Features func() (Features, <-chan struct{})
	Admit    *admit.Publishers
	// OnAck is called before a sender gets the response to a request, with the number of an export interval (cycle)
	// and the number of the request's spans that are counted in that interval. After the response, the sender drops
	// its copy of the spans. OnAck can be nil.
	OnAck func(cycle, spans, values uint64)
	Log   *slog.Logger
}

// Features are the agent's features, for the receivers that follow its rules.
type Features struct {
	Stats               bool // whether the agent accepts statistics
	PeerTags            []string
	SpanKinds           []string
	IgnoreResources     []string
	FiltersByTags       bool // whether the agent filters traces by tags of their root spans, which only the agent can do
	AllowsDropUnsampled bool // feature client_drop_p0s: unsampled traces need not be forwarded
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

// Check returns the joined errors of all invalid settings. flagPrefix is the first word of their flags, for example apm.
func (c *Config) Check(flagPrefix string) error {
	var err error
	if c.Socket.Path != "" {
		err = c.Socket.Check(flagPrefix + "-socket")
	}
	if c.Addr != "" {
		err = errors.Join(err, check.Address(flagPrefix+"-addr", c.Addr))
	}
	if c.MaxBodyBytes < c.MaxBody {
		err = errors.Join(err, fmt.Errorf("check %s-max-body-bytes: %s is less than the %s of one body; raise it, "+
			"or lower --%s-max-body",
			flagPrefix, memory.SizeText(c.MaxBodyBytes), memory.SizeText(c.MaxBody), flagPrefix))
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

// LeastBodyBytes returns the minimum of MaxBodyBytes with which one body of maximum length fits.
func (c *Config) LeastBodyBytes() int { return c.MaxBody }

// Publishers returns the maximum number of publishers. maxBatches is the maximum number of batches per body; the batches
// of one body need a publisher each.
func (c *Config) Publishers(maxBatches int) int {
	return max(maxBatches, min(MaxPublishers, c.MaxOrigins))
}

// MemorySizes are the sizes in bytes that Config.Memory needs.
type MemorySizes struct {
	Counting   int // memory to count the spans of one body
	Connection int // memory of one connection
	Publishers int // memory of all admit.Publishers together, one per origin
}

// Memory returns the maximum memory of a receiver, one part for each purpose, with the flag that limits it. data is
// the name of the received data in the parts, for example traces.
func (c *Config) Memory(flagPrefix, data string, sizes MemorySizes) []memory.Part {
	part := func(name string, bytes int, flag string) memory.Part {
		return memory.Part{Name: name, Bytes: int64(bytes), Flag: flag}
	}
	maxHashes := bodies.MaxDedupEntries(c.MaxBodyBytes) // a hash of each counted body, to recognize retries
	return []memory.Part{
		part("bodies of "+data, c.MaxBodyBytes, flagPrefix+"-max-body-bytes"),
		part("hashes of bodies of "+data, bodies.DedupBytes(maxHashes), flagPrefix+"-max-body-bytes"),
		// -max-body limits the size of a body, with which sizes.Counting grows.
		part("counting of "+data, c.Counters*sizes.Counting, flagPrefix+"-max-body"),
		part("connections with "+data, c.MaxConnections*sizes.Connection, flagPrefix+"-max-connections"),
		part("origins of "+data, sizes.Publishers, "max-origins"),
	}
}
