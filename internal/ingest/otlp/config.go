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

// Config is the configuration of the receiver. MaxBody limits both the received and the decompressed body.
type Config struct {
	receiver.Config
	MaxStreams     int              // requests in flight per HTTP/2 connection
	Forward        Collector        // the upstream
	Keep           *sampling.Policy // selects the traces to forward; nil forwards all
	Semantics      Semantics
	Labels         otel.Labels // labels of SemanticsOTel; Labels.Ignore applies to SemanticsDatadog as well
	MarksCounted   bool        // whether forwarded resources get an attribute that marks them as counted
	AllowedOrigins Origins     // origins of web pages whose scripts may send OTLP; nil disables CORS

	headerTimeout, readTimeout time.Duration // maximum time to receive a header, and a body
	forwardTimeout             time.Duration // maximum time to wait for the upstream's response
}

// DefaultConfig returns the defaults of the command line flags. Without a listen address, the receiver is disabled.
func DefaultConfig() Config {
	c := Config{Config: receiver.DefaultConfig()}
	c.MaxConnections = 128
	c.MaxStreams = 8
	c.MaxBody = 8 << 20 // a batch of 512 spans has a few hundred KiB; gRPC servers accept 4 MiB by default
	c.MaxBodyBytes = 32 << 20
	c.Buffer = defaultBuffer
	c.Semantics = SemanticsOTel
	c.headerTimeout = 5 * time.Second
	c.readTimeout = 10 * time.Second    // SDKs wait about 10 s for a response
	c.forwardTimeout = 30 * time.Second // longer than any SDK waits
	return c
}

// defaultBuffer is the default of --otlp-buffer. It is less than the default timeout of SDKs, 10 s.
const defaultBuffer = 3 * time.Second

// Check returns the joined errors of all invalid settings, or nil.
func (c *Config) Check() error {
	return errors.Join(c.Config.Check("otlp"), c.checkKeep())
}

// checkKeep returns an error if sampling of forwarded traces is configured (--otlp-keep), but there is no upstream
// to forward to, or if MaxBodyBytes is too small for one request.
func (c *Config) checkKeep() error {
	if c.Keep == nil {
		return nil
	}
	var forwardErr, memoryErr error
	if !c.Forward.IsSet() {
		forwardErr = errors.New("check otlp-keep: " +
			"nothing is forwarded without --otlp-forward; set it, or remove --otlp-keep")
	}
	neededBytes := c.LeastBodyBytes()
	if c.MaxBodyBytes < neededBytes {
		memoryErr = fmt.Errorf("check otlp-max-body-bytes: %s is less than the %s that one "+
			"request may need with --otlp-keep; "+
			"raise it, or lower --otlp-max-body", memory.SizeText(c.MaxBodyBytes), memory.SizeText(neededBytes))
	}
	return errors.Join(forwardErr, memoryErr)
}

// LeastBodyBytes returns the smallest valid MaxBodyBytes, the memory that one request of maximum length needs. If
// forwarded traces are sampled, that is the memory of three bodies: the received, the decompressed and the sampled one.
func (c *Config) LeastBodyBytes() int {
	if c.Keep == nil {
		return c.MaxBody
	}
	receivedBytes, decompressedBytes := c.MaxBody, c.MaxBody
	bodyBytes := receivedBytes + decompressedBytes + sampling.SelectionBytes(c.MaxBody)
	return roundUp(bodyBytes, 64<<10) // for a readable number in errors
}

// Memory returns the maximum memory of the OTLP receiver, one part for each purpose, or nil if the receiver is
// disabled. publisherBytes is the size of one admit.Publisher.
func (c *Config) Memory(publisherBytes int) []memory.Part {
	if !c.Enabled() {
		return nil
	}
	parts := c.Config.Memory("otlp", "OTLP", receiver.MemorySizes{
		Counting:   c.Semantics.countingBytes(c.MaxBody, len(c.Labels.Measures) > 0),
		Connection: c.connectionBytes(),
		Publishers: c.Publishers(rules.MaxBatches) * publisherBytes,
	})
	forwarding := c.Forward.Memory("OTLP")
	sdkMetrics := memory.Part{Name: "span metrics of SDKs", Bytes: sdkmetrics.Bytes}
	return append(parts, forwarding, sdkMetrics)
}

// Approximate memory of a connection.
const (
	// connectionBaseBytes is the memory without HTTP/2 streams: a header of maximum length with HTTP/1.1, or two
	// goroutines with their buffers and header tables with HTTP/2.
	connectionBaseBytes = 96 << 10
	// streamBytes is the memory of an HTTP/2 stream: a goroutine, a header of maximum length, and a share of minWindow.
	streamBytes = 48 << 10
	// headerBytes is the memory of a header that waits in net/http until the handler of a canceled stream returns.
	headerBytes = 32 << 10
	// waitingHeaders is the maximum number of waiting headers per stream.
	waitingHeaders = 4
)

// windowBytes returns the HTTP/2 receive window of a stream, and of a connection. The sender of a longer body has to
// wait for window updates.
func (c *Config) windowBytes() int { return min(c.MaxBody, maxWindow) }

const (
	minWindow = bodies.FirstBuffer // the smallest valid MaxBody
	maxWindow = 384 << 10          // a request of the Java agent with 512 spans fits
)

// connectionBytes returns the approximate maximum memory of a connection.
func (c *Config) connectionBytes() int {
	bytesPerStream := streamBytes + waitingHeaders*headerBytes
	// The streams of a connection share its window. The first minWindow bytes of it are included in streamBytes.
	bytesOverMinWindow := c.windowBytes() - minWindow
	return connectionBaseBytes + bytesOverMinWindow + c.MaxStreams*bytesPerStream
}

// roundUp returns the smallest multiple of unit that is not less than n.
func roundUp(n, unit int) int { return (n + unit - 1) / unit * unit }

// MaxUpstreamConnections returns the maximum number of connections to the upstream.
func (c *Config) MaxUpstreamConnections() int { return c.Forward.MaxUpstreamConnections() }

// Collector is the URL of the upstream, an OTLP server. The zero value disables forwarding.
type Collector struct{ destination.URL }

// protocol describes the valid URLs of --otlp-forward.
var protocol = destination.Protocol{
	Flag: "otlp-forward",
	Schemes: map[string]destination.Scheme{
		"http": {Port: "4318"}, "https": {IsTLS: true, Port: "443"}, "grpc": {IsGRPC: true, Port: "4317"},
		"grpcs": {IsGRPC: true, IsTLS: true, Port: "443"},
	},
	Examples: "http://host:4318, grpc://host:4317, https://, grpcs:// or unix:///path",
}

// ParseCollector parses a value of --otlp-forward, for example grpc://collector:4317.
func ParseCollector(text string) (c Collector, err error) {
	c.URL, err = protocol.Parse(text)
	return c, err
}

// TrustIn sets the file with the CA certificates that verify the upstream's certificate.
func (c *Collector) TrustIn(file string) error {
	return protocol.SetCAFile(&c.URL, file)
}

// target returns the path to which requests of a signal are sent, for example /v1/traces.
func (c *Collector) target(s signal) string {
	if c.IsGRPC() {
		return signals[s].grpcPath
	}
	return c.Path() + signals[s].httpPath
}
