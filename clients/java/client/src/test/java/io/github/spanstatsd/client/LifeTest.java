package io.github.spanstatsd.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.SocketException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** Daemons that start and stop, and a client that closes. */
class LifeTest {
    /**
     * A daemon is unreachable for too long, starts, and stops again: spans refused in the meantime
     * are counted, and reported when it is back.
     */
    @Test
    void publish_whileDaemonIsUnreachable_isRefused() throws Exception {
        try (FakeDaemon d = new FakeDaemon()) {
            SpanstatsClient c = Samples.open(d, b -> b.maxAge(Duration.ofMillis(1)).maxAway(Duration.ofMillis(1)));
            long[] offered = {0};
            for (int round = 0; round < 3; round++) {
                Samples.eventually("the gate is shut", () -> {
                    offered[0]++;
                    return !Samples.sample(0).publish(c);
                });
                long before = c.stats().refused(Reason.DISCONNECTED);
                assertEquals(0, Samples.publish(c, 10));
                offered[0] += 10;
                assertEquals(before + 10, c.stats().refused(Reason.DISCONNECTED));
                assertEquals(c.stats().refused(), c.stats().refused(Reason.DISCONNECTED));
                Samples.checkBooks(c, offered[0]);
                d.start();
                Samples.eventually("the gate is open", () -> {
                    offered[0]++;
                    return Samples.sample(0).publish(c);
                });
                c.flush().get();
                Stats s = c.stats();
                d.see(() -> {
                    assertEquals(s.refused(), d.counts.lost.get("disconnected"));
                    assertEquals(s.published(), d.counts.spans);
                });
                Samples.checkBooks(c, offered[0]);
                d.stop();
            }
            c.close(Duration.ofMinutes(1));
            assertFalse(Samples.sample(0).publish(c));
            assertEquals(1, c.stats().refused(Reason.CLOSED));
            Samples.checkBooks(c, offered[0] + 1);
        }
    }

    @Test
    void close_endsConnection() throws Exception {
        try (FakeDaemon d = new FakeDaemon().start()) {
            long threads = threads();
            SpanstatsClient c = Samples.open(d, b -> b.name("named"));
            Samples.eventually("it is connected", () -> c.stats().connected());
            assertEquals("fake 1", c.stats().daemon());
            assertEquals(threads + 1, threads());
            Samples.publish(c, 9);
            assertTrue(c.close(Duration.ofMinutes(1)));
            c.close();
            Samples.eventually("its thread has ended", () -> threads() == threads);
            assertEquals(0, Samples.publish(c, 2));
            Samples.checkBooks(c, 11);
            d.stop();
            assertEquals(9, d.counts.spans);
            assertEquals(1, d.counts.byes);
            assertEquals(2, c.stats().refused(Reason.CLOSED));
        }
    }

    /**
     * A listener, or a stage of a flush's future, leaves the client's thread interrupted: its
     * selector still waits.
     */
    @Test
    void clientThread_isNotLeftInterrupted() throws Exception {
        try (FakeDaemon d = new FakeDaemon().start()) {
            CompletableFuture<Thread> interrupted = new CompletableFuture<>();
            SpanstatsClient c = Samples.open(d, b -> b.listener((event, message) -> {
                if (interrupted.complete(Thread.currentThread())) Thread.currentThread().interrupt();
            }));
            Thread client = interrupted.get(1, TimeUnit.MINUTES);
            Samples.eventually("the interrupt is gone", () -> !client.isInterrupted());
            for (int i = 0; i < 3; i++) {
                c.flush().thenRun(() -> Thread.currentThread().interrupt()).get(1, TimeUnit.MINUTES);
                Thread.interrupted(); // the stage ran on this thread if the future was already complete
                Samples.eventually("the interrupt is gone", () -> !client.isInterrupted());
            }
            Samples.publish(c, 5);
            assertTrue(c.close(Duration.ofMinutes(1)));
            assertEquals(1, c.stats().connects());
            assertEquals(5, d.spans());
        }
    }

    private static long threads() {
        return Thread.getAllStackTraces().keySet().stream().filter(t -> t.getName().equals("spanstatsd-client") && t.isAlive()).count();
    }

    /** Close does not wait for a missing daemon. Without spans to send, nothing was lost. */
    @Test
    void close_withoutDaemon_doesNotWait() throws Exception {
        try (FakeDaemon d = new FakeDaemon()) {
            assertTrue(Samples.open(d, b -> {}).close(Duration.ofHours(1)));
            SpanstatsClient c = Samples.open(d, b -> {});
            Samples.publish(c, 3);
            assertFalse(c.close(Duration.ofHours(1)));
            assertEquals(3, c.stats().lost(Reason.CLOSED));
            Samples.checkBooks(c, 3);
        }
    }

    /**
     * A daemon does not read: close ends after its timeout, and data accepted by the socket before
     * counts as sent.
     */
    @Test
    void close_whenDaemonDoesNotRead_timesOut() throws Exception {
        try (FakeDaemon d = new FakeDaemon().start()) {
            SpanstatsClient c = Samples.open(d, b -> b.bufferBytes(8 << 20));
            Samples.eventually("it is connected", () -> c.stats().connected());
            Runnable goOn = d.pause();
            int spans = Samples.publish(c, 200_000);
            assertFalse(c.close(Duration.ofMillis(300)));
            Stats s = c.stats();
            assertTrue(s.lost(Reason.CLOSED) > 0 && s.sent() > 0, s::toString);
            Samples.checkBooks(c, 200_000);
            assertEquals(spans, s.sent() + s.lost());
            goOn.run();
            Samples.eventually("the daemon has what was sent", () -> d.spans() == s.sent());
            d.stop();
            assertEquals(s.sent(), d.counts.spans);
        }
    }

    /** A thread that is interrupted in close stops waiting, and stays interrupted. */
    @Test
    void close_whenInterrupted_returns() throws Exception {
        try (FakeDaemon d = new FakeDaemon().start()) {
            SpanstatsClient c = Samples.open(d, b -> b.bufferBytes(8 << 20));
            Samples.eventually("it is connected", () -> c.stats().connected());
            Runnable goOn = d.pause();
            Samples.publish(c, 200_000);
            Thread.currentThread().interrupt();
            assertFalse(c.close(Duration.ofHours(1)));
            assertTrue(Thread.interrupted());
            goOn.run();
        }
    }

    /**
     * After a crash, the spans that the daemon had not reported as settled are reported to the next
     * daemon.
     */
    @Test
    void crash_unsettledSpansAreReported() throws Exception {
        for (int settled : new int[] {0, 30, 70}) {
            assertEquals(70 - settled, unconfirmed(true, settled, false));
        }
        assertEquals(0, unconfirmed(true, 0, true), "it stopped in order");
        assertEquals(0, unconfirmed(false, 0, false), "it never says what becomes of spans");
    }

    private static long unconfirmed(boolean settles, int settled, boolean inOrder) throws Exception {
        try (FakeDaemon d = new FakeDaemon()) {
            d.settles = settles;
            d.start();
            SpanstatsClient c = Samples.open(d, b -> b.maxAge(Duration.ofMillis(1)));
            Samples.publish(c, 70);
            Samples.eventually("the daemon has all", () -> d.spans() == 70 && c.stats().sent() == 70);
            if (settled == 70) {
                c.flush().get();
            } else if (settled > 0) {
                d.setFeatures(Map.of("stats", true, "settled", settled));
                d.setFeatures(Map.of("stats", true, "settled", 20)); // settlement never decreases
                d.setFeatures(Map.of("stats", true, "peer_tags", List.of("seen")));
                Samples.eventually("that was read", () -> c.features().peerTags().size() == 1);
            }
            long connects = c.stats().connects();
            if (inOrder) d.stop();
            else d.kill();
            d.see(() -> d.features = Map.of("stats", true));
            d.start();
            Samples.eventually("the client is back", () -> c.stats().connects() == connects + 1);
            Samples.publish(c, 1);
            assertTrue(c.close(Duration.ofMinutes(1)));
            Stats s = c.stats();
            assertEquals(s.unconfirmed(), d.counts.lost.getOrDefault("daemon_died", 0L));
            assertEquals(71, s.sent());
            assertEquals(0, s.lost());
            return s.unconfirmed();
        }
    }

    /**
     * A daemon accepts fewer key numbers than its predecessor: spans with higher numbers are
     * counted as too large, and new spans are sent.
     */
    @Test
    void nextDaemon_withLowerLimits() throws Exception {
        try (FakeDaemon d = new FakeDaemon()) {
            d.maxKeys = 8192;
            d.maxKeyBytes = 7 << 20;
            d.start();
            SpanstatsClient c = Samples.open(d, b -> {});
            c.flush().get();
            publishKeys(c, 2000);
            c.flush().get();
            assertTrue(c.stats().knownKeys() > 1900, c.stats()::toString);
            d.stop();
            d.see(() -> d.maxKeys = 1024);
            publishKeys(c, 2000); // into buffers with numbers that the next daemon does not accept
            d.start();
            c.flush().get();
            Samples.eventually("it begins anew", () -> c.stats().knownKeys() < 1100);
            assertEquals(4000, c.stats().lost(Reason.TOO_LARGE));
            publishKeys(c, 2000);
            c.flush().get();
            assertTrue(c.stats().knownKeys() > 500 && c.stats().knownKeys() <= 1024, c.stats()::toString);
            Samples.checkBooks(c, 12_000);
            assertTrue(c.close(Duration.ofMinutes(1)));
            assertEquals(8000, d.spans());
            assertEquals(4000, d.counts.lost.get("too_large"));
        }
    }

    private static void publishKeys(SpanstatsClient c, int keys) {
        for (int i = 0; i < 2 * keys; i++) {
            Samples.Span s = Samples.sample(0);
            s.labels.set(2, "r" + i / 2);
            assertTrue(s.publish(c));
        }
    }

    /**
     * A reply to hello is not a welcome: the client reports the reason, retries, and loses nothing.
     */
    @Test
    void invalidWelcome_isRetried() throws Exception {
        byte[][] greetings = {
            Msgpack.frame(8, Map.of("reason", "version", "versions", List.of(2, 3))).array(),
            Msgpack.frame(2, Map.of("version", 2, "max_frame", 65536, "max_batch", 256)).array(),
            Msgpack.frame(2, Map.of("version", 1)).array(), Msgpack.frame(3, Map.of("stats", true)).array(),
            {0, 0, 0, 0}, {127, 0, 0, 0}, {0, 0, 0, 1, (byte) 0xc1}, {0, 0, 0, 3, (byte) 0x92, 9, (byte) 0x80},
        };
        try (FakeDaemon d = new FakeDaemon()) {
            List<String> heard = Collections.synchronizedList(new ArrayList<>());
            SpanstatsClient c = Samples.open(d, b -> b.listener((event, message) -> {
                heard.add(event + " " + message);
                throw new IllegalStateException("a listener that throws");
            }));
            Samples.publish(c, 5);
            int[] next = {0};
            d.greeting = () -> next[0] < greetings.length ? java.nio.ByteBuffer.wrap(greetings[next[0]++]) : null;
            d.start();
            Samples.eventually("all were met", () -> next[0] == greetings.length);
            d.see(() -> d.greeting = null);
            c.flush().get();
            assertTrue(c.close(Duration.ofMinutes(1)));
            assertEquals(5, d.spans());
            assertTrue(heard.stream().anyMatch(h -> h.startsWith("AWAY cannot reach spanstatsd")), heard::toString);
            assertTrue(heard.stream().anyMatch(h -> h.startsWith("CONNECTED connected to fake 1")), heard::toString);
        }
    }

    /**
     * The accept queue of a daemon is full: connect fails with EAGAIN, no connection attempt is
     * pending, and the client retries.
     */
    @Test
    void connect_withFullAcceptQueue_isRetried() throws Exception {
        try (FakeDaemon d = new FakeDaemon()) {
            List<SocketChannel> others = new ArrayList<>();
            try (ServerSocketChannel full = ServerSocketChannel.open(StandardProtocolFamily.UNIX)) {
                full.bind(UnixDomainSocketAddress.of(d.socket), 1);
                for (int i = 0; i < 10; i++) {
                    SocketChannel other = SocketChannel.open(StandardProtocolFamily.UNIX);
                    others.add(other);
                    other.configureBlocking(false);
                    try {
                        other.connect(UnixDomainSocketAddress.of(d.socket));
                    } catch (SocketException e) {
                        break; // the queue is full
                    }
                }
                SpanstatsClient c = Samples.open(d, b -> {});
                Samples.publish(c, 5);
                Thread.sleep(50);
                assertEquals(0, c.stats().connects());
                for (SocketChannel other : others) other.close();
                full.close();
                d.start();
                c.flush().get();
                assertEquals(5, d.spans());
                assertTrue(c.close(Duration.ofMinutes(1)));
            }
        }
    }

    /**
     * After the last span was sent, the client is not armed, and the next span starts the timer.
     */
    @Test
    void idleClient_isNotArmed() throws Exception {
        try (FakeDaemon d = new FakeDaemon().start()) {
            SpanstatsClient c = Samples.open(d, b -> b.maxAge(Duration.ofMillis(1)));
            for (int n = 1; n <= 20; n++) {
                assertTrue(Samples.sample(n).publish(c));
                int want = n;
                Samples.eventually("one span is sent for its age", () -> d.spans() == want);
            }
            assertTrue(c.close(Duration.ofMinutes(1)));
        }
    }

    /** Even if spans may wait longer, they are sent before the daemon's interval ends. */
    @Test
    void spans_areSentBeforeIntervalEnds() throws Exception {
        try (FakeDaemon d = new FakeDaemon()) {
            d.interval = 1_000_000_000L;
            d.start();
            SpanstatsClient c = Samples.open(d, b -> b.maxAge(Duration.ofHours(24)));
            Samples.publish(c, 3);
            Samples.eventually("they are sent", () -> d.spans() == 3);
            assertTrue(c.close(Duration.ofMinutes(1)));
        }
    }

    @Test
    void hello_hasOrigin() throws Exception {
        try (FakeDaemon d = new FakeDaemon().start()) {
            SpanstatsClient c = Samples.open(d, b -> b.origin(Origin.detected().service("shop").env(null).build()));
            c.flush().get();
            Map<?, ?> origin = d.origins.get(0);
            assertEquals("shop", origin.get("service"));
            assertEquals("java", origin.get("lang"));
            assertEquals(System.getProperty("java.version"), origin.get("lang_version"));
            assertEquals(36, ((String) origin.get("runtime_id")).length());
            assertFalse(origin.containsKey("env"));
            assertTrue(c.close(Duration.ofMinutes(1)));
        }
    }
}
