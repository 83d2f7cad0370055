package spanstatsd_test

import (
	"context"
	"log"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	spanstatsd "github.com/spanstatsd/spanstatsd/clients/otel-go"
)

// Every span is counted, and one trace in a hundred is sampled for exporters.
func Example() {
	processor, err := spanstatsd.NewSpanProcessor(spanstatsd.Config{})
	if err != nil {
		log.Fatal(err)
	}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithSampler(spanstatsd.AlwaysRecord(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(0.01)))),
		sdktrace.WithSpanProcessor(processor),
	)
	defer func() { _ = provider.Shutdown(context.Background()) }()
	_, span := provider.Tracer("shop").Start(context.Background(), "GET /carts/{id}")
	span.End()
}
