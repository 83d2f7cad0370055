package zipkin

import (
	"time"

	"github.com/spanstatsd/spanstatsd/internal/admit"
	"github.com/spanstatsd/spanstatsd/internal/door"
	"github.com/spanstatsd/spanstatsd/internal/door/bodies"
	"github.com/spanstatsd/spanstatsd/internal/door/destination"
	"github.com/spanstatsd/spanstatsd/internal/memory"
	"github.com/spanstatsd/spanstatsd/internal/rules"
	"github.com/spanstatsd/spanstatsd/internal/rules/otel"
	"github.com/spanstatsd/spanstatsd/internal/spantable"
)

// Config is what this door may use. MaxBody bounds a body as it comes and as it is uncompressed.
type Config struct {
	door.Config
	Forward destination.URL // where requests go on to
	Labels  otel.Labels
}

// Protocol is what destinations speak, by the schemes of their URLs.
var Protocol = destination.Protocol{
	Flag:    "zipkin-forward",
	Schemes: map[string]destination.Scheme{"http": {Port: "9411"}, "https": {IsTLS: true, Port: "443"}},
	Give:    "http://host:9411, https:// or unix:///path",
}

// DefaultConfig is the defaults of the command line: it listens nowhere.
func DefaultConfig() Config {
	c := Config{Config: door.DefaultConfig()}
	c.MaxConnections, c.Buffer, c.MaxBody, c.MaxBodyBytes = 128, 3*time.Second, 8<<20, 32<<20
	return c
}

// Check says everything that is unusable.
func (c *Config) Check() error { return c.Config.Check("zipkin") }

// Forwards is how many connections to the destination there are at most.
func (c *Config) Forwards() int { return c.Forward.Forwards() }

// Memory is the most that this door may come to use where it is on: what its limits add up to.
// publisher is what an origin takes to be published.
func (c *Config) Memory(publisher int) []memory.Part {
	if !c.Enabled() {
		return nil
	}
	counting := otel.CounterBytes(c.MaxBody) + spantable.MaxSpans(c.MaxBody)*admit.SpanBytes +
		bodies.InflaterBytes
	parts := c.Config.Memory("zipkin", "Zipkin", counting, connectionBytes,
		c.Publishers(rules.MaxBatches)*publisher)
	return append(parts, c.Forward.Memory("Zipkin"))
}

// connectionBytes is about what a connection takes beside its request, with a header as long as can be.
const connectionBytes = 96 << 10
