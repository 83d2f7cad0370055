package io.github.spanstatsd.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** The handling of spans that were handed over, for each row of the protocol's table. */
class KeptTest extends Keeping {
    @Test
    void settledSpans_areNotAskedAbout() throws Exception {
        try (FakeDaemon d = daemon()) {
            SpanstatsClient c = open(d, b -> {});
            handOver(d, c, 10, 20);
            assertEquals(30, c.stats().unsettled());
            d.settle(10);
            Samples.eventually("that was read", () -> c.stats().unsettled() == 20);
            d.settle(30);
            Samples.eventually("that was read", () -> c.stats().unsettled() == 0);
            restart(d, c);
            handOver(d, c, 5);
            assertTrue(c.close(Duration.ofMinutes(1)));
            assertEquals(Collections.nCopies(2, null), asked(d));
            assertEquals(35, d.counts.spans);
            assertEquals(Map.of(), d.counts.lost);
            Samples.checkBooks(c, 35);
        }
    }

    /** A daemon that is scraped answers a flush before a scrape has the spans, and is killed then. */
    @Test
    void flush_doesNotSettle() throws Exception {
        try (FakeDaemon d = daemon()) {
            d.isScraped = true;
            SpanstatsClient c = open(d, b -> {});
            handOver(d, c, 10);
            c.flush().get();
            assertEquals(10, c.stats().unsettled());
            restart(d, c);
            Samples.eventually("the spans arrive again", () -> d.counts.spans == 20);
        }
    }

    @Test
    void daemonExitsAfterBye_spansAreDelivered() throws Exception {
        try (FakeDaemon d = daemon()) {
            List<String> heard = Collections.synchronizedList(new ArrayList<>());
            SpanstatsClient c = open(d, b -> b.listener((event, message) -> heard.add(event.toString())));
            handOver(d, c, 10);
            d.stop();
            Samples.eventually("it has left", () -> !c.stats().connected());
            assertEquals(10, c.stats().unsettled());
            d.start();
            Samples.eventually("the client is back", () -> c.stats().connected());
            Samples.eventually("nothing is asked any more", () -> c.stats().unsettled() == 0);
            assertTrue(c.close(Duration.ofMinutes(1)));
            assertEquals(java.util.Arrays.asList(null, "t0"), asked(d));
            assertEquals(10, d.counts.spans);
            assertEquals(10, c.stats().sent());
            assertEquals(0, c.stats().unconfirmed());
            assertFalse(heard.contains("DIED") || heard.contains("RECOVERED"), heard::toString);
        }
    }

    /** A daemon is killed after its bye, before it has delivered its spans. */
    @Test
    void daemonKilledAfterBye_spansAreAskedAbout() throws Exception {
        try (FakeDaemon d = daemon()) {
            SpanstatsClient c = open(d, b -> {});
            handOver(d, c, 10);
            d.stop();
            d.see(() -> d.last().isDelivered = false);
            Samples.eventually("it has left", () -> !c.stats().connected());
            d.start();
            Samples.eventually("it has them again", () -> d.spans() == 20);
            assertTrue(c.close(Duration.ofMinutes(1)));
            assertEquals(java.util.Arrays.asList(null, "t0"), asked(d));
            assertEquals(10, c.stats().sent());
            Samples.checkBooks(c, 10);
        }
    }

    /**
     * Spans that are settled, in doubt, and not received by a destination, reported and not
     * reported. Waiting spans are sent after replayed ones.
     */
    @Test
    void nextDaemon_reportsOutcomes() throws Exception {
        try (FakeDaemon d = daemon()) {
            List<String> heard = Collections.synchronizedList(new ArrayList<>());
            SpanstatsClient c = open(d, b -> b.listener((event, message) -> heard.add(event + " " + message)));
            handOver(d, c, 50, 30, 20, 5, 7, 8);
            d.settle(50);
            Samples.eventually("that was read", () -> c.stats().unsettled() == 70);
            d.see(() -> d.last().outcomes.addAll(List.of(80L, 1L, 100L, 2L, 105L, 1L, 112L, 2L)));
            d.kill();
            Samples.eventually("it is noticed", () -> !c.stats().connected());
            assertEquals(70, c.stats().unsettled());
            assertEquals(120, c.stats().sent());
            publish(c, 3);
            d.start();
            Samples.eventually("all is there", () -> d.spans() == 120 + 20 + 7 + 8 + 3);
            assertEquals(ends(80, 100, 105, 123), d.last().ends);
            Samples.eventually("what is ambiguous was told", () -> d.counts.lost.equals(Map.of("ambiguous", 35L)));
            Stats s = c.stats();
            assertEquals(35, s.ambiguous());
            assertEquals(0, s.unconfirmed());
            assertEquals(38, s.unsettled());
            assertEquals(123, s.sent());
            Samples.checkBooks(c, 123);
            assertTrue(c.close(Duration.ofMinutes(1)));
            assertEquals(0, c.stats().unsettled());
            assertEquals(java.util.Arrays.asList(null, "t0"), asked(d));
            assertTrue(heard.stream().anyMatch(h -> h.equals("DIED spanstatsd died, and may have taken 70 spans with it")), heard::toString);
            assertTrue(heard.stream().anyMatch(h -> h.startsWith("RECOVERED fake 1 knows") && h.contains("35 are handed over again, 35 may have arrived, 0 may be lost")), heard::toString);
        }
    }

    /**
     * Daemons that crash before their reply are asked again with the same token. After a reply, the
     * question is not repeated.
     */
    @Test
    void question_isRepeatedUntilReply() throws Exception {
        try (FakeDaemon d = daemon()) {
            SpanstatsClient c = open(d, b -> {});
            handOver(d, c, 10);
            d.kill();
            d.see(() -> d.greeting = () -> ByteBuffer.wrap(new byte[] {0, 0, 0, 0})); // not a valid welcome
            d.start();
            Samples.eventually("it was asked three times", () -> asked(d).size() >= 4);
            d.see(() -> d.greeting = null);
            Samples.eventually("it has them again", () -> d.spans() == 20);
            handOver(d, c, 5);
            restart(d, c); // the next hello asks about all 15
            Samples.eventually("it has them again", () -> d.spans() == 25 + 15);
            assertEquals(ends(0, 15), d.last().ends);
            assertTrue(c.close(Duration.ofMinutes(1)));
            List<Object> asked = asked(d);
            int last = asked.size() - 1;
            assertNull(asked.get(0));
            assertEquals(Collections.nCopies(last - 1, "t0"), asked.subList(1, last));
            assertEquals("t1", asked.get(last));
            assertEquals(Map.of(), d.counts.lost);
            Samples.checkBooks(c, 15);
        }
    }

    /** The daemon does not know the connection: replaying could count spans twice. */
    @Test
    void unknownConnection_nothingIsResent() throws Exception {
        try (FakeDaemon d = daemon()) {
            SpanstatsClient c = open(d, b -> {});
            handOver(d, c, 10, 20);
            d.settle(10);
            Samples.eventually("that was read", () -> c.stats().unsettled() == 20);
            d.kill();
            d.records.clear();
            d.start();
            Samples.eventually("the client is back", () -> c.stats().connects() == 2);
            publish(c, 1);
            assertTrue(c.close(Duration.ofMinutes(1)));
            assertEquals(31, d.counts.spans);
            assertEquals(Map.of("daemon_died", 20L), d.counts.lost);
            assertEquals(20, c.stats().unconfirmed());
            Samples.checkBooks(c, 31);
        }
    }

    /**
     * Over the limit the oldest spans are released. They are counted only if the daemon that has
     * them crashes.
     */
    @Test
    void keptSpans_areBounded() throws Exception {
        for (int buffers : new int[] {0, 1, 3}) {
            try (FakeDaemon d = daemon()) {
                next = 0;
                SpanstatsClient c = Samples.open(d, b -> b.maxKept(buffers * Buffer.BYTES).maxKeys(0));
                c.flush().get(); // from now on it sends only when requested
                d.see(() -> d.answer = id -> null);
                for (int i = 0; i < 8; i++) { // messages of about 27 KiB
                    publish(c, 256);
                    c.flush(); // sends all of them together
                    handOver(d, c, 0);
                }
                assertEquals(0, c.stats().unconfirmed());
                d.see(() -> d.last().outcomes.set(0, 256L)); // the client was not notified
                d.see(() -> d.last().outcomes.addAll(List.of(512L, 1L)));
                d.kill();
                d.see(() -> d.answer = FakeDaemon::ok);
                d.start();
                Samples.eventually("the client is back", () -> c.stats().connects() == 2);
                assertTrue(c.close(Duration.ofMinutes(1)));
                long again = d.counts.spans - 8 * 256;
                assertEquals(c.stats().ambiguous(), 256);
                assertEquals(6 * 256 - again, c.stats().unconfirmed());
                assertEquals(buffers * 2 * 256, again);
                if (again > 0) assertEquals(ends(2048 - again, 2048), d.last().ends);
                Map<String, Long> lost = again == 1536 ? Map.of("ambiguous", 256L) : Map.of("ambiguous", 256L, "daemon_died", 1536 - again);
                assertEquals(lost, d.counts.lost);
                Samples.checkBooks(c, 2048);
            }
        }
    }
}
