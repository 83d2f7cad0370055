package io.github.spanstatsd.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Publishing allocates nothing, whether the span is accepted or not. */
class AllocationTest {
    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    private static final int SPANS = 5000;

    /**
     * Asserts that a thread allocates nothing, and repeats the measurement until the compiler has
     * finished with this code.
     */
    private static void assertNothing(String what, Runnable publish) {
        long least = Long.MAX_VALUE;
        for (int i = 0; i < 20 && least > 0; i++) {
            long before = THREADS.getThreadAllocatedBytes(Thread.currentThread().getId());
            publish.run();
            long after = THREADS.getThreadAllocatedBytes(Thread.currentThread().getId());
            least = Math.min(least, after - before);
        }
        // Measuring itself allocates a little.
        assertTrue(least < SPANS / 10, what + ": " + least + " bytes for " + SPANS + " spans");
    }

    @Test
    void publish_allocatesNothing() throws Exception {
        try (FakeDaemon d = new FakeDaemon().start()) {
            SpanstatsClient c = Samples.open(d, b -> b.bufferBytes(64 << 20));
            Samples.eventually("it is connected", () -> c.stats().connected());
            Random r = new Random(9);
            Samples.Span[] spans = new Samples.Span[100];
            Labels[] labels = new Labels[spans.length];
            EncodedKey[] keys = new EncodedKey[spans.length];
            Tags tags = new Tags().add("peer.service", "users").add("a:b");
            for (int i = 0; i < spans.length; i++) {
                spans[i] = Samples.random(r);
                labels[i] = spans[i].inLabels();
                keys[i] = EncodedKey.of(labels[i]);
            }
            assertNothing("by labels", () -> {
                for (int i = 0; i < SPANS; i++) {
                    Samples.Span s = spans[i % spans.length];
                    c.publish(s.text(0), s.text(1), s.text(2), s.text(3), s.text(4), TraceRoot.TRUE, 200, tags, s.text(8), s.text(9),
                            s.text(10), s.text(11), false, null, s.duration, s.end, s.flags, s.weight);
                }
            });
            assertNothing("by objects", () -> {
                for (int i = 0; i < SPANS; i++) c.publish(labels[i % labels.length], i, i, 0);
            });
            assertNothing("by keys", () -> {
                for (int i = 0; i < SPANS; i++) c.publish(keys[i % keys.length], i, i, 0);
            });
            assertEquals(0, c.stats().refused(), "not all was measured");
            c.close();
            assertNothing("refused", () -> {
                for (int i = 0; i < SPANS; i++) c.publish(keys[i % keys.length], i, i, 0);
            });
        }
        try (FakeDaemon nobody = new FakeDaemon()) {
            SpanstatsClient c = Samples.open(nobody, b -> b.bufferBytes(2 * Buffer.BYTES));
            EncodedKey key = EncodedKey.of(Samples.sample(0).inLabels());
            while (c.publish(key, 1, 1, 0)) {
                // Publishes until it is full.
            }
            assertNothing("full", () -> {
                for (int i = 0; i < SPANS; i++) c.publish(key, i, i, 0);
            });
            assertTrue(c.stats().refused(Reason.BUFFER_FULL) > SPANS);
            c.close();
        }
    }

    /**
     * The client's own thread does not allocate per kept span, only a few bytes per buffer for its
     * messages.
     */
    @Test
    void keptSpans_allocateNothing() throws Exception {
        try (FakeDaemon d = new FakeDaemon()) {
            d.settles = d.remembers = true;
            d.start();
            SpanstatsClient c = Samples.open(d, b -> b.maxKept(8 * Buffer.BYTES));
            Samples.eventually("it is connected", () -> c.stats().connected());
            long sender = Thread.getAllStackTraces().keySet().stream().filter(t -> t.getName().equals("spanstatsd-client")).findFirst().orElseThrow().getId();
            EncodedKey key = EncodedKey.of(Samples.sample(0).inLabels());
            long least = Long.MAX_VALUE;
            for (int i = 0; i < 20; i++) {
                long before = THREADS.getThreadAllocatedBytes(sender);
                for (int span = 0; span < 100_000; span++) {
                    while (!c.publish(key, span, span, 0)) Thread.onSpinWait();
                }
                Samples.eventually("it is sent", () -> c.stats().buffered() < 10_000);
                least = Math.min(least, THREADS.getThreadAllocatedBytes(sender) - before);
            }
            assertTrue(least < 1000, least + " bytes for 100000 spans");
            c.close();
        }
    }

    /** Keys without a number are written in full, without allocation. */
    @Test
    void unnumberedKeys_allocateNothing() throws Exception {
        try (FakeDaemon d = new FakeDaemon().start()) {
            SpanstatsClient c = Samples.open(d, b -> b.bufferBytes(64 << 20).maxKeys(0));
            Labels[] labels = new Labels[200];
            for (int i = 0; i < labels.length; i++) labels[i] = Samples.random(new Random(i)).inLabels();
            assertNothing("whole", () -> {
                for (int i = 0; i < SPANS; i++) c.publish(labels[i % labels.length], i, i, 0);
            });
            c.close();
        }
    }
}
