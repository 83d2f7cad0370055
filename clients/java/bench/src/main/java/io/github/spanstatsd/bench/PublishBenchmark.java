package io.github.spanstatsd.bench;

import io.github.spanstatsd.client.Config;
import io.github.spanstatsd.client.EncodedKey;
import io.github.spanstatsd.client.SpanstatsClient;
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

/** Publishes spans by labels and by encoded keys. */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class PublishBenchmark {
    /** One client per process, as in an application. */
    @State(Scope.Benchmark)
    public static class Shared {
        @Param({"64", "4096"})
        public int keys;

        /** Path of the daemon's socket, which need not exist. */
        @Param("")
        public String socket;

        SpanstatsClient client;

        @Setup
        public void open() throws InterruptedException {
            client = SpanstatsClient.open(Config.builder().socket(socket).build());
            for (int i = 0; i < 200 && !client.stats().connected(); i++) {
                Thread.sleep(5); // without a daemon, the refusal is measured
            }
        }

        @TearDown
        public void close() {
            client.close();
        }
    }

    /** Keys of one thread. */
    @State(Scope.Thread)
    public static class Own {
        private Span[] spans;
        private EncodedKey[] encoded;
        private int next;
        private int seen;

        @Setup
        public void make(Shared shared) {
            spans = Span.all(shared.keys);
            encoded = new EncodedKey[shared.keys];
            for (int i = 0; i < encoded.length; i++) {
                encoded[i] = EncodedKey.of(spans[i].labels());
            }
        }

        /**
         * An application creates the strings of a request shortly before the request ends, so they
         * are in the processor's cache.
         */
        @Setup(Level.Invocation)
        public void read(Pause before) {
            for (int i = 1; i <= Cost.BURST; i++) {
                seen += spans[next + i & spans.length - 1].read();
            }
        }

        private int next() {
            return next = next + 1 & spans.length - 1;
        }
    }

    @Benchmark
    @OperationsPerInvocation(Cost.BURST)
    public void labels(Shared shared, Own own, Cost cost) {
        cost.begin();
        int refused = 0;
        long end = System.currentTimeMillis() * 1_000_000;
        for (int i = 0; i < Cost.BURST; i++) {
            Span s = own.spans[own.next()];
            boolean taken = shared.client.publish(
                    s.service, s.operation, s.resource, s.type, s.kind, s.root, s.status, s.peers, s.method,
                    s.method == null ? null : s.route, null, null, false, null, 1_000_000 + i * 20_000L, end, SpanstatsClient.TOP_LEVEL, 1);
            refused += taken ? 0 : 1;
        }
        cost.end(refused);
    }

    @Benchmark
    @OperationsPerInvocation(Cost.BURST)
    public void encoded(Shared shared, Own own, Cost cost) {
        cost.begin();
        int refused = 0;
        long end = System.currentTimeMillis() * 1_000_000;
        for (int i = 0; i < Cost.BURST; i++) {
            boolean taken = shared.client.publish(own.encoded[own.next()], 1_000_000 + i * 20_000L, end, SpanstatsClient.TOP_LEVEL, 1);
            refused += taken ? 0 : 1;
        }
        cost.end(refused);
    }
}
