package spanstatsd

import (
	"context"
	"fmt"
	"os"
	"sync"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/spanstatsd/spanstatsd/client"
	"github.com/spanstatsd/spanstatsd/internal/rules/otel"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// Config configures a SpanProcessor.
type Config struct {
	// Resource is the resource of the tracer provider. It determines the service, and the other labels that all
	// spans of the process share. If it is nil, resource.Default is used, as by the provider.
	Resource *resource.Resource
	// Client configures the connection to the daemon. The zero value is sufficient. Its Origin is derived from
	// Resource, unless it has a service.
	Client client.Config
	// MetricAttributes publishes the attributes of the metrics that OpenTelemetry's conventions define, such as url.scheme,
	// for a daemon with --prometheus-dialect=conventions or --otlp-dialect=conventions.
	MetricAttributes bool
	// MeterProvider receives the metric spanstatsd.client.spans, which counts the ended spans that are published,
	// refused and lost. It is optional.
	MeterProvider metric.MeterProvider
}

// SpanProcessor counts each span that ends. It implements the SDK's interface of the same name.
type SpanProcessor struct {
	client  *client.Client
	keys    *keyCache
	readers sync.Pool // of *reader
	metrics metric.Registration
}

var _ sdktrace.SpanProcessor = (*SpanProcessor)(nil)

// byConvention are the daemon's default rules for labels.
var byConvention = otel.NewPolicy(otel.Labels{Resource: otel.Identifying})

// newPolicy returns the daemon's rules for labels. The environment variable SPANSTATSD_SPAN_NAMES selects the rule for
// names: "convention", the default, or "as-sent". newPolicy returns an error for another value.
func newPolicy(metricAttributes bool) (*otel.Policy, error) {
	labels := otel.Labels{Resource: otel.Identifying, Metrics: metricAttributes}
	switch names := os.Getenv("SPANSTATSD_SPAN_NAMES"); names {
	case "", "convention":
	case "as-sent":
		labels.KeepNames = true
	default:
		return nil, fmt.Errorf("read SPANSTATSD_SPAN_NAMES: %q is not a rule for names; set convention or as-sent", names)
	}
	return otel.NewPolicy(labels), nil
}

// NewSpanProcessor returns a processor that publishes spans to the daemon. It does not wait for the daemon: the
// processor connects in the background. NewSpanProcessor returns an error only if the configuration is invalid.
func NewSpanProcessor(config Config) (*SpanProcessor, error) {
	if config.Resource == nil {
		config.Resource = resource.Default()
	}
	policy, err := newPolicy(config.MetricAttributes)
	if err != nil {
		return nil, fmt.Errorf("create span processor: %w", err)
	}
	origin := originOf(encodeResource(config.Resource))
	if config.Client.Origin.Service == "" {
		config.Client.Origin = origin
	}
	publisher, err := client.Open(config.Client)
	if err != nil {
		return nil, fmt.Errorf("create span processor: %w", err)
	}
	p := &SpanProcessor{client: publisher, keys: newKeyCache()}
	p.readers.New = func() any { return newReader(policy, origin.Service, config.Resource) }
	if config.MeterProvider == nil {
		return p, nil
	}
	p.metrics, err = p.registerMetrics(config.MeterProvider)
	if err != nil {
		_ = publisher.Close(context.Background()) // nothing has been published
		return nil, fmt.Errorf("create span processor: register its metrics: %w", err)
	}
	return p, nil
}

// OnStart does nothing.
func (*SpanProcessor) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd publishes a span to the daemon. It never waits: if the buffers of the client are full, the client counts
// the span as refused.
func (p *SpanProcessor) OnEnd(s sdktrace.ReadOnlySpan) {
	r := p.readers.Get().(*reader)
	defer p.readers.Put(r)
	fingerprint, flags := r.read(s)
	key := p.keys.get(fingerprint) // much faster than computing the labels
	if key == nil {
		key = client.EncodeKey(*r.labels())
		p.keys.add(fingerprint, key)
	}
	r.batch[0] = client.Snapshot{
		Encoded: key, Duration: s.EndTime().Sub(s.StartTime()), End: s.EndTime(),
		Error: flags&span.Error != 0, TopLevel: flags&span.TopLevel != 0,
	}
	p.client.Publish(r.batch[:])
}

// ForceFlush sends all spans that have ended, and requests that the daemon exports its statistics now. It returns when
// every destination of the daemon has accepted them. While the daemon is unavailable, it waits until ctx is done.
func (p *SpanProcessor) ForceFlush(ctx context.Context) error {
	return p.client.Flush(ctx) //nolint:wrapcheck // the error is complete
}

// Shutdown sends all spans that have ended, and waits a few seconds at most until the daemon has delivered them or
// counted them as lost. Spans that end later are refused. It returns an error if spans were lost.
func (p *SpanProcessor) Shutdown(ctx context.Context) error {
	err := p.client.Close(ctx)
	if p.metrics != nil {
		_ = p.metrics.Unregister() // fails only for a registration of another provider
	}
	return err //nolint:wrapcheck // the error is complete
}

// Stats returns the numbers of spans that were published, refused, sent and lost. Their sums match at any moment, see
// client.Stats.
func (p *SpanProcessor) Stats() client.Stats { return p.client.Stats() }
