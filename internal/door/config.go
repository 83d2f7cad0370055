package door

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/check"
	"github.com/spanstatsd/spanstatsd/internal/door/bodies"
	"github.com/spanstatsd/spanstatsd/internal/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spanstatsd/spanstatsd/internal/socket"
)

// Config is what every door may use, by its operator's will.
type Config struct {
	Socket         socket.Config // an empty path: none
	Addr           string        // empty: none
	Given          net.Listener  // of Addr, where a service manager made it
	AllowUIDs      []uint32
	MaxConnections int              // senders connected at a time
	MaxBody        int              // bytes of a body that is held
	MaxBodyBytes   int              // of all bodies at a time
	MaxOrigins     int              // that an interval has room for, and that are remembered
	Counters       int              // bodies counted at a time
	Buffer         time.Duration    // how long a request waits for who is behind, where that is away
	Exemplars      *exemplars.Table // of spans that went on, which is its owner's; nil: nobody wants any
	// Features returns what the agent wants and a channel that is closed when that changes.
	Features func() (Features, <-chan struct{})
	Admit    *admit.Publishers
	// Answered is told of spans, by their cycle, whose sender is about to hear that they are counted:
	// from then on nobody has them but this daemon. Nil: nobody wants to know.
	Answered func(cycle, spans uint64)
	Log      *slog.Logger
}

// Features is what the agent wants counted, of every door whose rules are the agent's.
type Features struct {
	Stats           bool
	PeerTags        []string
	SpanKinds       []string
	IgnoreResources []string
	FiltersTags     bool // it leaves out traces by their roots' tags, which only it can
	DropsP0s        bool // it needs no traces that sampling threw away
}

// Setup is what a door has that no operator turns.
type Setup struct {
	Flags   string   // the first word of its flags: apm
	Brings  string   // what comes by it, for errors and the log: traces
	Ended   string   // the log's words where listening ended by itself
	Results []string // names of what may become of a request
	IsLast  bool     // nobody behind it counts what is not counted here
	Behind  Behind
	HTTP2   *http.HTTP2Config // nil: it speaks HTTP/1.1 alone
	// How long a sender may take to send a header, and a body, to read a piece of an answer, and to
	// send another request.
	Header, Read, Write, Between time.Duration
}

// DefaultConfig is what all doors have in common: each listens nowhere.
func DefaultConfig() Config {
	return Config{MaxOrigins: MaxPublishers, Counters: min(maxCounters, runtime.GOMAXPROCS(0))}
}

const (
	// maxCounters is more than a program is fed with that counts millions of spans a second with
	// each.
	maxCounters = 8
	// maxBuffer is far beyond what any sender waits for an answer.
	maxBuffer = time.Minute
)

// Enabled says whether there is anything to listen on.
func (c *Config) Enabled() bool { return c.Socket.Path != "" || c.Addr != "" }

// Check says everything that is unusable. The flags begin with a word.
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

// LeastBodyBytes is what all bodies together must be allowed for one to be held.
func (c *Config) LeastBodyBytes() int { return c.MaxBody }

// Publishers bounds the origins that are remembered. One body may need so many.
func (c *Config) Publishers(batches int) int {
	return max(batches, min(MaxPublishers, c.MaxOrigins))
}

// Memory is the most that a door may come to use: what its limits add up to. counting is what
// counting a body takes, connection a connection, and origins those that are remembered.
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
