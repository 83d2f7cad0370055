/**
 * Counts OpenTelemetry spans in the process that creates them: an extension for the Java agent
 * ({@link io.github.spanstatsd.opentelemetry.SpanstatsExtension}), and its two parts for SDKs
 * configured in code ({@link io.github.spanstatsd.opentelemetry.AlwaysRecordSampler}, {@link
 * io.github.spanstatsd.opentelemetry.SpanstatsSpanProcessor}).
 *
 * <h2>What it owns</h2>
 *
 * A client, which has the connection and the buffers, and a few readers. A reader processes each
 * ended span: {@code SpanValues} collects the attributes from which labels are derived, {@code
 * SpanNames}, {@code Work} and {@code Statuses} derive name, operation, type and status, and the
 * result is published immediately. The labels are the same as those that the daemon derives from the span over OTLP.
 * The two implementations share no code; the vectors in internal/rules/otel/testdata verify that
 * they agree. So change both together.
 *
 * <h2>Concurrency</h2>
 *
 * Any thread can end spans. It claims a reader with one compare-and-set, tries the next if another
 * thread has it, and creates one if all are claimed. It takes only the locks that the SDK uses for
 * reading a span, and those are not contended after the span has ended.
 *
 * <h2>Limits</h2>
 *
 * Those of the client; two readers per processor, at most 64; 256 operation names, and 256 span names. After the
 * call no reference to a span or its strings is kept, except the strings from which a cached
 * name was joined.
 *
 * <h2>What is counted</h2>
 *
 * Every recorded span, once. The sampling threshold in its tracestate is not used as a weight: with
 * the sampler, every span of this process is recorded.
 */
package io.github.spanstatsd.opentelemetry;
