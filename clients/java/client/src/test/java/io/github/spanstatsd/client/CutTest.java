package io.github.spanstatsd.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

/** A connection that ends in the middle of a buffer. */
class CutTest extends Keeping {
    /**
     * A daemon crashes or disconnects in the middle of a buffer: both the messages that it had read
     * and the rest are sent once, in order. How much the socket accepts depends on its buffers, so
     * the test tries increasing amounts.
     */
    @Test
    void cutBuffer_isSentOnce() throws Exception {
        for (int before = 0; before < 20; before++) {
            next = 0;
            cut(before, before % 2 == 0);
        }
    }

    private void cut(int before, boolean inOrder) throws Exception {
        try (FakeDaemon d = daemon()) {
            SpanstatsClient c = Samples.open(d, b -> b.bufferBytes(4 << 20));
            Runnable goOn = fill(d, c, before / 2);
            FakeDaemon.Record first = d.last();
            if (inOrder) {
                CompletableFuture<Void> stopped = CompletableFuture.runAsync(() -> stop(d));
                Samples.eventually("the client has read bye", () -> !c.stats().connected());
                goOn.run();
                stopped.get();
            } else {
                d.cut();
                goOn.run();
                d.kill();
            }
            assertTrue(first.ends.size() < 60_000);
            d.see(() -> first.outcomes.set(0, (long) first.ends.size())); // which was not reported to the client
            d.see(() -> d.answer = id -> null);
            d.start();
            c.flush();
            Samples.eventually("the rest is there", () -> {
                synchronized (d) {
                    return first.ends.size() + d.last().ends.size() == next && c.stats().buffered() == 0;
                }
            });
            List<Long> all = new ArrayList<>(first.ends);
            all.addAll(d.last().ends);
            assertEquals(ends(0, next), all);
            List<Long> rest = d.last().ends;
            d.kill();
            d.see(() -> d.answer = FakeDaemon::ok);
            d.start();
            Samples.eventually("the client is back", () -> c.stats().connects() == 3);
            c.flush().get();
            assertEquals(rest, d.last().ends); // the daemon in between had reported nothing
            assertEquals(Map.of(), d.counts.lost);
            assertTrue(c.close(Duration.ofMinutes(1)));
            Samples.checkBooks(c, next);
        }
    }

    /** Fills the socket of a daemon that has stopped reading, until it continues. */
    private Runnable fill(FakeDaemon d, SpanstatsClient c, int before) throws Exception {
        publish(c, 100);
        c.flush().get();
        Runnable goOn = d.pause();
        for (int i = 0; i < before; i++) {
            publish(c, 200);
            c.flush();
            Samples.eventually("it is sent", () -> c.stats().buffered() == 0);
        }
        publish(c, 60_000); // more than the socket accepts
        Samples.eventually("the socket is full", () -> c.stats().sent() > 10_000 && isStill(c));
        assertTrue(c.stats().buffered() > 10_000, c.stats()::toString);
        return goOn;
    }

    /** The same without a following daemon: each span is counted exactly once. */
    @Test
    void cutBuffer_withoutNextDaemon_isCountedOnce() throws Exception {
        for (int before = 0; before < 10; before++) {
            next = 0;
            try (FakeDaemon d = daemon()) {
                SpanstatsClient c = Samples.open(d, b -> b.bufferBytes(4 << 20));
                Runnable goOn = fill(d, c, before);
                d.cut();
                goOn.run();
                d.kill();
                assertFalse(c.close(Duration.ofMillis(50)));
                assertEquals(0, c.stats().buffered(), c.stats()::toString);
                assertEquals(c.stats().sent() - 100, c.stats().unsettled());
                Samples.checkBooks(c, next);
            }
        }
    }

    private static void stop(FakeDaemon d) {
        try {
            d.stop();
        } catch (Exception e) {
            throw new AssertionError(e);
        }
    }

    private static boolean isStill(SpanstatsClient c) {
        long sent = c.stats().sent();
        try {
            Thread.sleep(20);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
        return c.stats().sent() == sent;
    }
}
