package spanstatsd

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// observe registers the metric spanstatsd.client.spans.
func (p *SpanProcessor) observe(provider metric.MeterProvider) (metric.Registration, error) {
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
		for result, byReason := range map[string]map[string]uint64{"refused": stats.Refused, "lost": stats.Lost} {
			for reason, n := range byReason {
				o.ObserveInt64(spans, int64(n), metric.WithAttributes(
					attribute.String("result", result), attribute.String("reason", reason)))
			}
		}
		return nil
	}, spans)
}
