package otlp

import (
	"errors"
	"fmt"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/door"
	"github.com/spanstatsd/spanstatsd/internal/door/bodies"
	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spanstatsd/spanstatsd/internal/rules"
	"github.com/spanstatsd/spanstatsd/internal/rules/otel"
	"github.com/spanstatsd/spanstatsd/internal/sampling"
	"github.com/spanstatsd/spanstatsd/internal/sdkmetrics"
)

// Config is what this door may use. MaxBody bounds a body as it comes and as it is uncompressed.
type Config struct {
	door.Config
	MaxStreams int               // requests that one connection of HTTP/2 may have under way
	Forward    Collector         // where requests go on to
	Keep       *sampling.Keeping // which traces go on; nil: all
	Reading    Reading
	Labels     otel.Labels // of ReadingOTel, but for what is ignored
	// Marks: what was counted says so by an attribute of its resources too, as it goes on.
	Marks   bool
	Origins Origins // of pages whose scripts may send; nil: CORS is off

	headerTimeout, readTimeout time.Duration // how long an SDK may take to send a header, and a body
	forwardTimeout             time.Duration // how long a destination may take to answer
}

// DefaultConfig is the defaults of the command line: it listens nowhere. An SDK's batch of
// 512 spans is some hundred KiB; gRPC servers take 4 MiB of anybody.
func DefaultConfig() Config {
	c := Config{
		Config: door.DefaultConfig(), MaxStreams: 8, Reading: ReadingOTel,
		// about as long as an SDK waits for its answer
		headerTimeout: 5 * time.Second, readTimeout: 10 * time.Second,
		forwardTimeout: 30 * time.Second, // longer than any SDK waits
	}
	c.MaxConnections, c.Buffer, c.MaxBody, c.MaxBodyBytes = 128, defaultBuffer, 8<<20, 32<<20
	return c
}

// defaultBuffer is shorter than SDKs wait for an answer, which is 10 s if nobody says
// otherwise.
const defaultBuffer = 3 * time.Second

// Check says everything that is unusable.
func (c *Config) Check() error {
	err := c.Config.Check("otlp")
	if c.Keep != nil && !c.Forward.IsSet() {
		err = errors.Join(err, errors.New("check otlp-keep: "+
			"there is no --otlp-forward, so that no trace goes on; "+
			"give it, or leave --otlp-keep out"))
	}
	if need := c.LeastBodyBytes(); c.Keep != nil && c.MaxBodyBytes < need {
		err = errors.Join(err, fmt.Errorf("check otlp-max-body-bytes: %s is less than the %s that one "+
			"request may need with --otlp-keep; "+
			"raise it, or lower --otlp-max-body", memory.SizeText(c.MaxBodyBytes), memory.SizeText(need)))
	}
	return err
}

// LeastBodyBytes is what all bodies together must be allowed for one to be held: with Keep as it
// came, uncompressed, and what is left of it.
func (c *Config) LeastBodyBytes() int {
	if c.Keep == nil {
		return c.MaxBody
	}
	const step = 64 << 10 // a number that a person can read
	return (2*c.MaxBody + sampling.LeftBytes(c.MaxBody) + step - 1) / step * step
}

// Memory is the most that this door may come to use where it is on: what its limits
// add up to. publisher is what an origin takes to be published.
func (c *Config) Memory(publisher int) []memory.Part {
	if !c.Enabled() {
		return nil
	}
	parts := c.Config.Memory("otlp", "OTLP", c.Reading.countingBytes(c.MaxBody), c.connectionBytes(),
		c.Publishers(rules.MaxBatches)*publisher)
	if c.Forward.IsSet() {
		parts = append(parts, memory.Part{
			Name: "what SDKs say of their spans", Bytes: sdkmetrics.Bytes, Flag: "otlp-forward",
		})
	}
	return append([]memory.Part{c.Forward.Memory("OTLP")}, parts...)
}

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
	leastWindow = bodies.FirstBuffer // that net/http knows, but for a byte
	mostWindow  = 384 << 10
)

func (c *Config) connectionBytes() int {
	return plainBytes + c.windowBytes() - leastWindow +
		c.MaxStreams*(streamBytes+waitingStreams*headerBytes)
}

// Forwards is how many connections to the destination there are at most.
func (c *Config) Forwards() int { return c.Forward.Forwards() }
