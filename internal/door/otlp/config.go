package otlp

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/check"
	"github.com/spanstatsd/spanstatsd/internal/door"
	"github.com/spanstatsd/spanstatsd/internal/door/bodies"
	"github.com/spanstatsd/spanstatsd/internal/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spanstatsd/spanstatsd/internal/oteltraces"
	"github.com/spanstatsd/spanstatsd/internal/socket"
)

// Config is what this room may use.
type Config struct {
	Socket    socket.Config // an empty path: none
	Addr      string        // empty: none
	Given     net.Listener  // of Addr, where a service manager made it
	AllowUIDs []uint32
	// MaxConnections is how many SDKs may be connected at a time, MaxStreams how many
	// requests one connection of HTTP/2 may have under way.
	MaxConnections int
	MaxStreams     int
	MaxBody        int                 // bytes of a body, as it comes and as it is without gzip
	MaxBodyBytes   int                 // of all bodies at a time
	MaxOrigins     int                 // that an interval has room for, and that are remembered
	Counters       int                 // bodies counted at a time
	Forward        Destination         // where requests go on to
	Keep           *oteltraces.Keeping // which traces go on; nil: all
	Reading        Reading
	// Marks: what was counted says so by an attribute of its resources too, as it goes on.
	Marks bool
	// Features returns what the agent wants and a channel that is closed when that changes.
	// ReadingDatadog asks it.
	Features  func() (Features, <-chan struct{})
	Buffer    time.Duration    // how long a request waits for a destination that is away
	Exemplars *exemplars.Table // of spans that went on, which is its owner\'s; nil: nobody wants any
	Admit     *admit.Publishers
	Log       *slog.Logger

	headerTimeout, readTimeout time.Duration // how long an SDK may take to send a header, and a body
	forwardTimeout             time.Duration // how long a destination may take to answer
}

// DefaultConfig is the defaults of the command line: it listens nowhere. An SDK's batch of
// 512 spans is some hundred KiB; gRPC servers take 4 MiB of anybody.
func DefaultConfig() Config {
	return Config{
		MaxConnections: 128, MaxStreams: 8, Buffer: defaultBuffer, MaxBody: 8 << 20, MaxBodyBytes: 32 << 20, Reading: ReadingOTel,
		headerTimeout: 5 * time.Second, readTimeout: 10 * time.Second, // about as long as an SDK waits for its answer
		forwardTimeout: 30 * time.Second, // longer than any SDK waits
		MaxOrigins:     door.MaxPublishers, Counters: min(maxCounters, runtime.GOMAXPROCS(0)),
	}
}

// defaultBuffer is shorter than SDKs wait for an answer, which is 10 s if nobody says
// otherwise; maxBuffer is far beyond.
const (
	defaultBuffer = 3 * time.Second
	maxBuffer     = time.Minute
)

// maxCounters is more than a program is fed with that counts millions of spans a second
// with each.
const maxCounters = 8

// leastBody is what any request fits that holds a span or two.
const leastBody = bodies.FirstBuffer

// Enabled says whether there is anything to listen on.
func (c *Config) Enabled() bool { return c.Socket.Path != "" || c.Addr != "" }

// Check says everything that is unusable.
func (c *Config) Check() (err error) {
	if c.Socket.Path != "" {
		err = c.Socket.Check("otlp-socket")
	}
	if c.Addr != "" {
		err = errors.Join(err, check.Address("otlp-addr", c.Addr))
	}
	if c.MaxBodyBytes < c.MaxBody {
		err = errors.Join(err, fmt.Errorf("check otlp-max-body-bytes: %s is less than the %s of one body",
			memory.SizeText(c.MaxBodyBytes), memory.SizeText(c.MaxBody)))
	}
	if c.Keep != nil && !c.Forward.IsSet() {
		err = errors.Join(err, errors.New("check otlp-keep: there is no --otlp-forward, so that no trace goes on; give it, or leave --otlp-keep out"))
	}
	if need := 2*c.MaxBody + oteltraces.KeptBytes(c.MaxBody); c.Keep != nil && c.MaxBodyBytes < need {
		err = errors.Join(err, fmt.Errorf("check otlp-max-body-bytes: %s is less than the %s that one request may need with --otlp-keep; raise it, or lower --otlp-max-body",
			memory.SizeText(c.MaxBodyBytes), memory.SizeText(need)))
	}
	return errors.Join(err,
		check.Number("otlp-max-connections", c.MaxConnections, 1, 1<<20),
		check.Time("otlp-buffer", c.Buffer, 0, maxBuffer),
		check.Number("otlp-max-streams", c.MaxStreams, 1, 1<<10),
		check.Number("otlp-counters", c.Counters, 1, 1<<10),
		check.Size("otlp-max-body", c.MaxBody, leastBody, 1<<30),
		check.AtMost("otlp-max-body-bytes", c.MaxBodyBytes, memory.MostBytes),
	)
}

// Memory is the most that this room may come to use where it is on: what its limits
// add up to. publisher is what an origin takes to be published.
func (c *Config) Memory(publisher int) []memory.Part {
	if !c.Enabled() {
		return nil
	}
	forwarding := int64(0)
	if c.Forward.IsSet() {
		forwarding = maxForwards * forwardBytes
	}
	return []memory.Part{
		{Name: "connections to the destination of OTLP", Bytes: forwarding},
		{Name: "bodies of OTLP", Bytes: int64(c.MaxBodyBytes), Flag: "otlp-max-body-bytes"},
		{Name: "counting of OTLP", Bytes: int64(c.Counters) * int64(c.Reading.countingBytes(c.MaxBody)), Flag: "otlp-max-body"},
		{Name: "connections with OTLP", Bytes: int64(c.MaxConnections) * int64(c.connectionBytes()), Flag: "otlp-max-connections"},
		{Name: "origins of OTLP", Bytes: int64(c.publishers()) * int64(publisher), Flag: "max-origins"},
	}
}

// publishers bounds the origins that are remembered. One body may need maxBatches.
func (c *Config) publishers() int { return max(maxBatches, min(door.MaxPublishers, c.MaxOrigins)) }

// plainBytes is about what a connection takes beside its requests: of HTTP/1.1 one with a
// header as long as can be, of HTTP/2 two goroutines, their buffers and the tables of
// headers. streamBytes is what a request takes: a goroutine, a header as long as can be,
// and its part of leastWindow. waitingStreams is how many times as many headers
// net/http keeps, while handlers run whose streams were given up, and headerBytes one of them.
const (
	plainBytes     = 96 << 10
	streamBytes    = 48 << 10
	headerBytes    = 32 << 10
	waitingStreams = 4
)

// windowBytes is what net/http buffers of a body, and of all of a connection's. The SDK of a
// longer one waits to be told that it may send more, again and again, which costs both sides; so
// it has room for what Java's agent sends with 512 spans, and for no more than a body may have.
func (c *Config) windowBytes() int { return min(c.MaxBody, mostWindow) }

const (
	leastWindow = leastBody // that net/http knows, but for a byte
	mostWindow  = 384 << 10
)

// forwardBytes is about what a connection to the destination takes, with its answer.
const forwardBytes = maxAnswer + maxAnswerHeader + 64<<10

// Forwards is how many connections to the destination there are at most.
func (c *Config) Forwards() int {
	if !c.Forward.IsSet() {
		return 0
	}
	return maxForwards
}

func (c *Config) connectionBytes() int {
	return plainBytes + c.windowBytes() - leastWindow + c.MaxStreams*(streamBytes+waitingStreams*headerBytes)
}
