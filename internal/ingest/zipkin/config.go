package zipkin

import (
	"time"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver/bodies"
	"github.com/spanstatsd/spanstatsd/internal/ingest/receiver/destination"
	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spanstatsd/spanstatsd/internal/rules"
	"github.com/spanstatsd/spanstatsd/internal/rules/otel"
	"github.com/spanstatsd/spanstatsd/internal/span/spantable"
)

// Config is the configuration of the receiver. MaxBody limits both the received and the decompressed body.
type Config struct {
	receiver.Config
	Forward destination.URL // the upstream
	Labels  otel.Labels
}

// Protocol describes the URLs of upstreams.
var Protocol = destination.Protocol{
	Flag:     "zipkin-forward",
	Schemes:  map[string]destination.Scheme{"http": {Port: "9411"}, "https": {IsTLS: true, Port: "443"}},
	Examples: "http://host:9411, https:// or unix:///path",
}

// DefaultConfig returns the defaults of the command line. They contain no listen address.
func DefaultConfig() Config {
	c := Config{Config: receiver.DefaultConfig()}
	c.MaxConnections, c.Buffer, c.MaxBody, c.MaxBodyBytes = 128, 3*time.Second, 8<<20, 32<<20
	return c
}

// Check returns the joined errors of all invalid settings.
func (c *Config) Check() error { return c.Config.Check("zipkin") }

// MaxUpstreamConnections returns the maximum number of connections to the upstream.
func (c *Config) MaxUpstreamConnections() int { return c.Forward.MaxUpstreamConnections() }

// Memory returns the maximum memory of the Zipkin receiver, one part for each purpose, or nil if the receiver is
// disabled. publisherBytes is the size of one admit.Publisher.
func (c *Config) Memory(publisherBytes int) []memory.Part {
	if !c.Enabled() {
		return nil
	}
	publishingBytes := spantable.MaxSpans(c.MaxBody) * admit.SpanBytes
	counterBytes := otel.CounterBytes(c.MaxBody) + publishingBytes + bodies.DecompressorBytes
	parts := c.Config.Memory("zipkin", "Zipkin", receiver.MemorySizes{
		Counting:   counterBytes,
		Connection: connectionBytes,
		Publishers: c.Publishers(rules.MaxBatches) * publisherBytes,
	})
	return append(parts, c.Forward.Memory("Zipkin"))
}

// connectionBytes is the approximate memory of a connection with a header of maximum length.
const connectionBytes = 96 << 10
