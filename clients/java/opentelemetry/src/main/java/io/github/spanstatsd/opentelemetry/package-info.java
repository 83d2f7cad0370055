/**
 * Counts OpenTelemetry's spans in the process that makes them: an extension for the Java agent
 * ({@link io.github.spanstatsd.opentelemetry.SpanstatsExtension}), and its two parts for whoever builds
 * an SDK by hand ({@link io.github.spanstatsd.opentelemetry.AlwaysRecordSampler},
 * {@link io.github.spanstatsd.opentelemetry.SpanstatsSpanProcessor}).
 *
 * <h2>What it owns</h2>
 *
 * A client, which has the connection and the buffers, and a few readers. A span that ends is read by one of
 * them: {@code SpanValues} takes of its attributes those that labels are made of, {@code Work} and {@code Statuses}
 * say what it did and how that ended, and what comes of it is published and forgotten. The labels
 * are those that the daemon makes of the same span by OTLP. The two share no code and are held equal by the
 * vectors in internal/rules/otel/testdata, so a change of one is a change of both.
 *
 * <h2>Threading rule</h2>
 *
 * Any thread ends spans. It claims a reader by one try to swap a word, tries the next where another
 * has it, and makes one where all are claimed. It takes no lock but those that the SDK takes for whoever
 * reads a span, and nobody else has those when a span has ended.
 *
 * <h2>Bounds</h2>
 *
 * Those of the client; two readers a processor, 64 at most; and 256 names of operations. Nothing
 * refers to a span, or to a text of its own, when the call has returned, but for the texts that such a
 * name was joined of.
 *
 * <h2>What is counted</h2>
 *
 * Every span that is recorded, once. What its tracestate says of sampling elsewhere is no weight here:
 * with the sampler there is no span of this process that another one stands for.
 */
package io.github.spanstatsd.opentelemetry;
