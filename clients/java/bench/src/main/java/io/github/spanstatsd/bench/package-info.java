/**
 * What publishing a span costs a Java process, beside what OpenTelemetry's own histogram of the
 * same attributes costs it.
 *
 * <p>{@link Bench} is the program. It starts a daemon before a stand-in of the agent, has JMH run
 * {@link PublishBenchmark} and {@link HistogramBenchmark} with its allocation profiler, each in
 * processes of their own, measures in two more what {@link LiveHeap} adds, and writes two tables and
 * a sentence that holds them against the aims. Spans come in bursts with a pause between them, which
 * is in no figure: a thread that does nothing but publish would only measure how full a buffer is.
 * Times are those of the publishing threads on the processor ({@link Cost}).
 *
 * <p>Each thread has keys of its own, equal to those of others: it is {@link Span} that says what
 * they are. The daemon and the stand-in live as long as the program, and end with it.
 */
package io.github.spanstatsd.bench;
