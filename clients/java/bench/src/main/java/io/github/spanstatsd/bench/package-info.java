/**
 * Measures the cost of publishing a span in a Java process, compared with OpenTelemetry's own
 * histogram of the same attributes.
 *
 * <p>{@link Bench} is the main class. It starts a daemon and a mock agent, runs {@link
 * PublishBenchmark} and {@link HistogramBenchmark} with JMH and its allocation profiler, each in
 * separate processes, measures the memory use of both with {@link LiveHeap} in two more processes,
 * and prints two tables and a comparison with the goals. Spans come in bursts with pauses, which
 * are not measured: without them, the thread would only measure how full a buffer is. Times are CPU
 * times of the publishing threads ({@link Cost}).
 *
 * <p>Each thread has its own keys, which are equal to those of other threads; see {@link Span}. The
 * daemon and the mock agent end with the program.
 */
package io.github.spanstatsd.bench;
