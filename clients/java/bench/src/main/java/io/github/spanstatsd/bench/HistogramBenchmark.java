package io.github.spanstatsd.bench;

import io.opentelemetry.api.common.Attributes;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/** Records the same spans in OpenTelemetry's exponential histogram. */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class HistogramBenchmark {
    /** One instrument per process. */
    @State(Scope.Benchmark)
    public static class Shared {
        @Param({"64", "4096"})
        public int keys;

        Histogram histogram;

        @Setup
        public void open() {
            histogram = new Histogram();
        }

        @TearDown
        public void close() {
            histogram.close();
        }
    }

    /** Keys of one thread. */
    @State(Scope.Thread)
    public static class Own {
        private Span[] spans;
        private Attributes[] built;
        private int next;
        private int seen;

        @Setup
        public void make(Shared shared) {
            spans = Span.all(shared.keys);
            built = new Attributes[shared.keys];
            for (int i = 0; i < built.length; i++) {
                built[i] = spans[i].attributes();
            }
        }

        /**
         * An application creates the strings of a request shortly before the request ends, so they
         * are in the processor's cache.
         */
        @Setup(Level.Invocation)
        public void read(Pause before) {
            for (int i = 1; i <= Cost.BURST; i++) {
                seen += spans[next + i & spans.length - 1].read() + built[next + i & spans.length - 1].hashCode();
            }
        }

        private int next() {
            return next = next + 1 & spans.length - 1;
        }
    }

    @Benchmark
    @OperationsPerInvocation(Cost.BURST)
    public void built(Shared shared, Own own, Cost cost) {
        cost.begin();
        for (int i = 0; i < Cost.BURST; i++) {
            shared.histogram.durations.record(0.001 + i * 0.00002, own.built[own.next()]);
        }
        cost.end(0);
    }

    @Benchmark
    @OperationsPerInvocation(Cost.BURST)
    public void eachBuilt(Shared shared, Own own, Cost cost) {
        cost.begin();
        for (int i = 0; i < Cost.BURST; i++) {
            shared.histogram.durations.record(0.001 + i * 0.00002, own.spans[own.next()].attributes());
        }
        cost.end(0);
    }
}
