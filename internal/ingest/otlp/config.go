package otlp

import (
	"errors"
	"fmt"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/ingest/otlp/sdkmetrics"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver/bodies"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver/destination"
	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spanstatsd/spanstatsd/internal/rules"
	"github.com/spanstatsd/spanstatsd/internal/rules/otel"
	"github.com/spanstatsd/spanstatsd/internal/sampling"
)

// Config is the configuration of the receiver. MaxBody bounds a body as it comes and decompressed.
type Config struct {
	receiver.Config
	MaxStreams int              // requests in flight per HTTP/2 connection
	Forward    Collector        // the upstream
	Keep       *sampling.Policy // which traces are forwarded; nil: all
	Reading    Reading
	Labels     otel.Labels // of ReadingOTel, but for what is ignored
	Marks      bool        // forwarded resources have an attribute that says that they are counted
	Origins    Origins     // of pages whose scripts may send; nil: CORS is off

	headerTimeout, readTimeout time.Duration // for an SDK to send a header, and a body
	forwardTimeout             time.Duration // for the upstream to answer
}

// DefaultConfig returns the defaults of the command line, which listen nowhere. An SDK's batch of 512 spans has
// some hundred KiB; gRPC servers accept 4 MiB.
func DefaultConfig() Config {
	c := Config{
		Config: receiver.DefaultConfig(), MaxStreams: 8, Reading: ReadingOTel,
		// about as long as an SDK waits for a response
		headerTimeout: 5 * time.Second, readTimeout: 10 * time.Second,
		forwardTimeout: 30 * time.Second, // longer than any SDK waits
	}
	c.MaxConnections, c.Buffer, c.MaxBody, c.MaxBodyBytes = 128, defaultBuffer, 8<<20, 32<<20
	return c
}

// defaultBuffer is shorter than SDKs wait for a response, which is 10 s by default.
const defaultBuffer = 3 * time.Second

// Check returns all that is unusable.
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

// LeastBodyBytes returns the least limit of all bodies with which one can be buffered: with Keep as it came,
// decompressed, and sampled.
func (c *Config) LeastBodyBytes() int {
	if c.Keep == nil {
		return c.MaxBody
	}
	const step = 64 << 10 // a human-readable number
	return (2*c.MaxBody + sampling.SelectionBytes(c.MaxBody) + step - 1) / step * step
}

// Memory returns the memory limit of the receiver if it is on. publisher is the memory per origin.
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

// plainBytes is about the memory of a connection without its streams: of HTTP/1.1 with a header of the maximum
// length, of HTTP/2 two goroutines, their buffers and header tables. streamBytes is that of a
// stream: a goroutine, a header of the maximum length, and its part of leastWindow. waitingStreams is how many
// times as many headers net/http keeps while handlers of canceled streams run, headerBytes one of them.
const (
	plainBytes     = 96 << 10
	streamBytes    = 48 << 10
	headerBytes    = 32 << 10
	waitingStreams = 4
)

// windowBytes is the receive window of a stream and of a connection. The SDK of a longer body waits for
// window updates, which costs both sides; so the window holds a request of Java's agent with 512 spans, but
// no more than a body may have.
func (c *Config) windowBytes() int { return min(c.MaxBody, mostWindow) }

const (
	leastWindow = bodies.FirstBuffer // net/http's default, plus one
	mostWindow  = 384 << 10
)

func (c *Config) connectionBytes() int {
	return plainBytes + c.windowBytes() - leastWindow +
		c.MaxStreams*(streamBytes+waitingStreams*headerBytes)
}

// Forwards returns the maximum number of connections to the upstream.
func (c *Config) Forwards() int { return c.Forward.Forwards() }

// Collector is the upstream: another server that accepts OTLP. The zero value is none.
type Collector struct{ destination.URL }

var protocol = destination.Protocol{
	Flag: "otlp-forward",
	Schemes: map[string]destination.Scheme{
		"http": {Port: "4318"}, "https": {IsTLS: true, Port: "443"}, "grpc": {IsGRPC: true, Port: "4317"},
		"grpcs": {IsGRPC: true, IsTLS: true, Port: "443"},
	},
	Give: "http://host:4318, grpc://host:4317, https://, grpcs:// or unix:///path",
}

// ParseCollector parses a URL.
func ParseCollector(text string) (c Collector, err error) {
	c.URL, err = protocol.Parse(text)
	return c, err //nolint:wrapcheck // it says what to do
}

// TrustIn has its certificate checked by the authorities of a file.
func (c *Collector) TrustIn(file string) error {
	return protocol.TrustIn(&c.URL, file) //nolint:wrapcheck // it says what to do
}

// target returns the path of a signal.
func (c *Collector) target(s signal) string {
	if c.IsGRPC() {
		return signals[s].grpc
	}
	return c.Path() + signals[s].http
}
