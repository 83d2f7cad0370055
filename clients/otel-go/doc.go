// Package spanstatsd counts every span of a program that uses OpenTelemetry's SDK, sampled or not.
//
// A SpanProcessor publishes a snapshot of each finished span to the daemon's Unix socket, some 17 bytes, and
// AlwaysRecord lets the SDK record the spans that a sampler drops. So request metrics are exact, although only
// the sampled spans are exported:
//
//	processor, err := spanstatsd.NewSpanProcessor(spanstatsd.Config{Resource: res})
//	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithHeaders(spanstatsd.ExporterHeaders()))
//	provider := sdktrace.NewTracerProvider(
//		sdktrace.WithResource(res),
//		sdktrace.WithSampler(spanstatsd.AlwaysRecord(sampler)),
//		sdktrace.WithSpanProcessor(processor),
//		sdktrace.WithBatcher(exporter),
//	)
//
// # Labels
//
// A span is counted under the same labels as if it was exported over OTLP to the daemon with --otlp-semantics otel.
// The processor uses the daemon's own code for this: it encodes the attributes that labels are made of as an
// OTLP request in memory, and applies the daemon's rules to it. A span counts once, whatever its tracestate says
// about sampling.
//
// # The application never waits
//
// OnEnd takes about a microsecond, and makes no system call. If the client's buffer is full, or no daemon has been
// available for a minute, spans are refused and counted in Stats. Shutdown sends the buffered spans and waits until
// the daemon reports that they are settled. Without Shutdown, the buffered spans are lost.
//
// # Concurrency
//
// All functions are safe for concurrent use. A span is read with the memory of one reader, which a pool lends to one
// goroutine at a time. The encoded keys are in 16 maps with a lock each, so goroutines rarely wait for each other.
//
// # Limits
//
// Those of package client, 4 MiB for encoded keys, and about 100 KiB per reader, of which there are as many as
// goroutines that end spans at the same moment.
package spanstatsd
