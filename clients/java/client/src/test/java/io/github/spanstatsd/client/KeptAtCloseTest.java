package io.github.spanstatsd.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** A closing client waits until its spans are settled, or reports how many are not. */
class KeptAtCloseTest extends Keeping {
    /**
     * Close requests a flush and waits for the reply, which can be that a destination did not
     * accept the spans.
     */
    @Test
    void close_waitsForSettlement() throws Exception {
        for (boolean isTaken : new boolean[] {true, false}) {
            try (FakeDaemon d = daemon()) {
                next = 0;
                List<String> heard = Collections.synchronizedList(new ArrayList<>());
                SpanstatsClient c = open(d, b -> b.listener((event, message) -> heard.add(event + " " + message)));
                handOver(d, c, 10);
                d.settle(4);
                CompletableFuture<Long> asked = new CompletableFuture<>();
                d.see(() -> d.answer = id -> {
                    asked.complete(id);
                    return null;
                });
                CompletableFuture<Boolean> closed = CompletableFuture.supplyAsync(() -> c.close(Duration.ofHours(1)));
                long id = asked.get(1, TimeUnit.MINUTES);
                assertFalse(closed.isDone());
                assertEquals(0, d.counts.byes);
                if (isTaken) d.settle(10);
                d.say(Msgpack.frame(7, isTaken ? FakeDaemon.ok(id) : Map.of("id", id, "ok", false, "error", "agent said no")));
                assertTrue(closed.get(1, TimeUnit.MINUTES));
                assertEquals(isTaken ? 0 : 6, c.stats().unsettled());
                assertEquals(!isTaken, heard.contains("UNSETTLED closed before a daemon has said what became of 6 spans that were handed over"),
                        heard::toString);
                assertEquals(1, d.counts.byes);
            }
        }
    }

    /** If the daemon never replies, close ends gracefully within its timeout. */
    @Test
    void close_withoutReply_reportsUnsettledSpans() throws Exception {
        try (FakeDaemon d = daemon()) {
            List<String> heard = Collections.synchronizedList(new ArrayList<>());
            SpanstatsClient c = open(d, b -> b.listener((event, message) -> heard.add(event + " " + message)));
            handOver(d, c, 10);
            d.see(() -> d.answer = id -> null);
            assertTrue(c.close(Duration.ofSeconds(2)));
            assertTrue(heard.stream().noneMatch(h -> h.startsWith("DIED")), heard::toString); // the client disconnected
            assertEquals(10, c.stats().unsettled());
            assertEquals(0, c.stats().lost());
            assertEquals(1, d.counts.byes);
            Samples.checkBooks(c, 10);
        }
    }

    /**
     * The daemon crashes while the client waits for settlement: the next one receives the kept
     * spans, although the client is closing.
     */
    @Test
    void close_afterCrash_resendsToNextDaemon() throws Exception {
        try (FakeDaemon d = daemon()) {
            SpanstatsClient c = open(d, b -> {});
            handOver(d, c, 10);
            CompletableFuture<Long> asked = new CompletableFuture<>();
            d.see(() -> d.answer = id -> {
                asked.complete(id);
                return null;
            });
            CompletableFuture<Boolean> closed = CompletableFuture.supplyAsync(() -> c.close(Duration.ofHours(1)));
            asked.get(1, TimeUnit.MINUTES);
            d.kill();
            Samples.eventually("it is noticed", () -> !c.stats().connected());
            assertFalse(closed.isDone());
            d.see(() -> d.answer = FakeDaemon::ok);
            d.start();
            assertTrue(closed.get(1, TimeUnit.MINUTES));
            assertEquals(20, d.counts.spans);
            assertEquals(0, c.stats().unsettled());
            Samples.checkBooks(c, 10);
        }
    }

    /**
     * No daemon follows: close ends after its timeout, and reports the number of unsettled spans.
     */
    @Test
    void close_withoutNextDaemon_endsAfterTimeout() throws Exception {
        try (FakeDaemon d = daemon()) {
            SpanstatsClient c = open(d, b -> {});
            handOver(d, c, 10);
            d.kill();
            Samples.eventually("it is noticed", () -> !c.stats().connected());
            publish(c, 2);
            assertFalse(c.close(Duration.ofMillis(200)));
            assertEquals(10, c.stats().unsettled());
            assertEquals(2, c.stats().lost(Reason.CLOSED));
            Samples.checkBooks(c, 12);
        }
    }
}
