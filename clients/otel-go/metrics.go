package spanstatsd

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// registerMetrics registers the metric spanstatsd.client.spans. Its value is read from p.Stats at each collection.
func (p *SpanProcessor) registerMetrics(provider metric.MeterProvider) (metric.Registration, error) {
	meter := provider.Meter("github.com/spanstatsd/spanstatsd/clients/otel-go")
	spans, err := meter.Int64ObservableCounter("spanstatsd.client.spans", metric.WithUnit("{span}"),
		metric.WithDescription("Ended spans: published (passed to the client), refused before that, or lost after it."))
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller does
	}
	//nolint:wrapcheck // the caller does
	return meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		stats := p.Stats()
		o.ObserveInt64(spans, int64(stats.Published), metric.WithAttributes(attribute.String("result", "published")))
		observeByReason(o, spans, "refused", stats.Refused)
		observeByReason(o, spans, "lost", stats.Lost)
		return nil
	}, spans)
}

// observeByReason reports one value of the metric for each reason.
func observeByReason(o metric.Observer, spans metric.Int64Observable, result string, counts map[string]uint64) {
	for reason, count := range counts {
		o.ObserveInt64(spans, int64(count), metric.WithAttributes(
			attribute.String("result", result), attribute.String("reason", reason)))
	}
}
