package io.github.spanstatsd.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.Test;

/** Published spans arrive unchanged, and refused ones are counted. */
class ClientTest {
    /**
     * Compares the messages decoded by a daemon with a naive model, with a mix of labels, label
     * objects and encoded keys.
     */
    @Test
    void publish_spansArriveUnchanged() throws Exception {
        for (int mostKeys : new int[] {4096, 40, 0}) {
            try (FakeDaemon d = new FakeDaemon().start()) {
                d.maxKeys = 8192;
                SpanstatsClient c = Samples.open(d, b -> b.bufferBytes(64 << 20).maxKeys(mostKeys).maxAge(Duration.ofMillis(1)));
                Random r = new Random(7);
                Counts want = new Counts();
                List<EncodedKey> keys = new ArrayList<>();
                List<Samples.Span> spans = new ArrayList<>();
                for (int i = 0; i < 20_000; i++) {
                    Samples.Span s = Samples.random(r);
                    s.count(want);
                    boolean accepted;
                    if (i % 3 == 0) {
                        accepted = s.publish(c);
                    } else if (i % 3 == 1 || keys.size() > 200) {
                        accepted = c.publish(s.inLabels(), s.duration, s.end, s.flags, s.weight);
                    } else {
                        keys.add(EncodedKey.of(s.inLabels()));
                        spans.add(s);
                        accepted = c.publish(keys.get(keys.size() - 1), s.duration, s.end, s.flags, s.weight);
                    }
                    assertTrue(accepted, "refused, though there is room for all");
                    if (i % 7 == 0 && !keys.isEmpty()) {
                        int k = r.nextInt(keys.size());
                        spans.get(k).count(want);
                        s = spans.get(k);
                        assertTrue(c.publish(keys.get(k), s.duration, s.end, s.flags, s.weight));
                    }
                }
                assertTrue(c.close(Duration.ofMinutes(1)));
                d.stop();
                Samples.checkBooks(c, want.spans);
                assertEquals(want.spans, d.counts.spans);
                assertEquals(want.byKey, d.counts.byKey);
                assertTrue(d.counts.mostInABatch <= 256);
                assertEquals(mostKeys > 0, d.counts.numbered > 1000, d.counts.numbered + " by number");
                assertTrue(d.counts.defined <= mostKeys);
            }
        }
    }

    /** Unique keys are not learned, and recurring keys among them are. */
    @Test
    void uniqueKeys_areNotLearned() throws Exception {
        try (FakeDaemon d = new FakeDaemon().start()) {
            SpanstatsClient c = Samples.open(d, b -> b.bufferBytes(64 << 20));
            for (int i = 0; i < 50_000; i++) {
                Samples.Span s = Samples.sample(i);
                if (i % 10 > 0) s.labels.set(2, "once " + i);
                assertTrue(s.publish(c));
            }
            int known = c.stats().knownKeys();
            assertTrue(known >= 16 && known < 100, known + " keys are known"); // the 16 recurring ones, and few others
            c.close();
            assertEquals(50_000, d.spans());
        }
    }

    @Test
    void publish_withFullBuffer_isRefused() throws Exception {
        try (FakeDaemon d = new FakeDaemon()) {
            SpanstatsClient c = Samples.open(d, b -> b.bufferBytes(4 * Buffer.BYTES));
            int offered = 0;
            int accepted = 0;
            for (; c.stats().refused() < 1000; offered++) accepted += Samples.sample(offered).publish(c) ? 1 : 0;
            Samples.checkBooks(c, offered);
            Stats s = c.stats();
            assertEquals(1000, s.refused(Reason.BUFFER_FULL));
            assertEquals(accepted, s.buffered());
            assertFalse(c.close(Duration.ofMillis(1)));
            Samples.checkBooks(c, offered);
            assertEquals(accepted, c.stats().lost(Reason.CLOSED));
        }
    }

    /** Spans refused without a daemon are reported to the next daemon, once. */
    @Test
    void refusedSpans_areReportedToNextDaemon() throws Exception {
        try (FakeDaemon d = new FakeDaemon()) {
            SpanstatsClient c = Samples.open(d, b -> b.bufferBytes(2 * Buffer.BYTES));
            int offered = 0;
            for (; c.stats().refused() < 100; offered++) Samples.sample(offered).publish(c);
            Stats before = c.stats();
            d.start();
            for (int i = 0; i < 3; i++) c.flush().get();
            assertEquals(before.buffered(), d.spans());
            d.see(() -> assertEquals(Map.of("buffer_full", before.refused()), d.counts.lost));
            Samples.checkBooks(c, offered);
            assertTrue(c.close(Duration.ofMinutes(1)));
        }
    }

    @Test
    void flush_completesWithReply() throws Exception {
        try (FakeDaemon d = new FakeDaemon().start()) {
            SpanstatsClient c = Samples.open(d, b -> {});
            for (int n = 1; n <= 3; n++) {
                assertEquals(7, Samples.publish(c, 7));
                c.flush().get();
                int times = n;
                d.see(() -> {
                    assertEquals(7 * times, d.counts.spans);
                    assertEquals(times, d.counts.flushes);
                });
            }
            d.see(() -> d.answer = id -> Map.of("id", id, "ok", false, "error", "agent said no"));
            assertTrue(failure(c.flush()).contains("agent said no"));
            d.see(() -> d.answer = id -> FakeDaemon.ok(id + 9)); // a reply with another ID is ignored
            CompletableFuture<Void> never = c.flush();
            Samples.eventually("it was asked", asked(d, 5));
            assertFalse(never.isDone());
            never.cancel(false);
            assertThrows(CancellationException.class, never::get);
            CompletableFuture<Void> left = c.flush(); // the daemon disconnects when it is asked
            Samples.eventually("it was asked", asked(d, 6));
            d.kill();
            assertTrue(failure(left).contains("flush again"));
            CompletableFuture<Void> waits = c.flush(); // there is no daemon, and one starts later
            d.see(() -> d.answer = FakeDaemon::ok);
            d.start();
            waits.get();
            assertTrue(c.close(Duration.ofMinutes(1)));
            assertTrue(failure(c.flush()).contains("closed"));
        }
    }

    /**
     * Unanswered flushes use bounded memory: cancelled ones are removed, and over the limit further
     * ones fail immediately.
     */
    @Test
    void flush_withoutDaemon_isBounded() throws Exception {
        try (FakeDaemon d = new FakeDaemon()) {
            SpanstatsClient c = Samples.open(d, b -> {});
            for (int i = 0; i < 3 * Flushes.MOST; i++) {
                CompletableFuture<Void> flush = c.flush();
                assertFalse(flush.isDone(), "flush " + i + " failed, though those before it were cancelled");
                flush.cancel(false);
            }
            List<CompletableFuture<Void>> waiting = new ArrayList<>();
            for (int i = 0; i < Flushes.MOST; i++) waiting.add(c.flush());
            assertTrue(failure(c.flush()).contains("wait for a daemon already"));
            d.start();
            for (CompletableFuture<Void> flush : waiting) flush.get(1, TimeUnit.MINUTES);
            c.flush().get(1, TimeUnit.MINUTES);
            assertTrue(c.close(Duration.ofMinutes(1)));
        }
    }

    /**
     * A client whose origin is available later buffers spans until then, and can be closed without
     * it.
     */
    @Test
    void origin_availableLater() throws Exception {
        try (FakeDaemon d = new FakeDaemon().start()) {
            CompletableFuture<Origin> origin = new CompletableFuture<>();
            SpanstatsClient c = Samples.open(d, b -> b.origin(origin));
            assertEquals(3, Samples.publish(c, 3));
            CompletableFuture<Void> flush = c.flush();
            assertEquals(0, c.stats().connects());
            origin.complete(Origin.detect());
            flush.get(1, TimeUnit.MINUTES);
            assertEquals(3, d.spans());
            assertTrue(c.close(Duration.ofMinutes(1)));

            SpanstatsClient never = Samples.open(d, b -> b.origin(new CompletableFuture<>()));
            assertEquals(2, Samples.publish(never, 2));
            flush = never.flush();
            assertFalse(never.close(Duration.ofMinutes(1)));
            assertTrue(failure(flush).contains("closed"));
            assertEquals(2, never.stats().lost(Reason.CLOSED));
        }
    }

    private static BooleanSupplier asked(FakeDaemon d, int times) {
        return () -> {
            synchronized (d) {
                return d.counts.flushes == times;
            }
        };
    }

    private static String failure(CompletableFuture<Void> flush) {
        Throwable cause = assertThrows(ExecutionException.class, () -> flush.get(1, TimeUnit.MINUTES)).getCause();
        assertTrue(cause instanceof FlushException);
        return cause.getMessage();
    }

    /** An agent stops accepting statistics, and starts again. */
    @Test
    void statistics_notWanted() throws Exception {
        try (FakeDaemon d = new FakeDaemon().start()) {
            SpanstatsClient c = Samples.open(d, b -> {});
            assertTrue(c.features().stats() && c.features().peerTags().isEmpty());
            c.flush().get();
            Samples.publish(c, 5);
            d.setFeatures(Map.of("stats", false, "peer_tags", List.of("peer.service")));
            Samples.eventually("it is told", () -> !c.features().stats());
            assertEquals(List.of("peer.service"), c.features().peerTags());
            Features same = c.features();
            d.setFeatures(Map.of("stats", false, "peer_tags", List.of("peer.service")));
            assertEquals(0, Samples.publish(c, 4));
            c.flush().get();
            assertTrue(same == c.features(), "the same is another");
            assertEquals(5, c.stats().lost(Reason.NOT_WANTED));
            assertEquals(4, c.stats().refused(Reason.NOT_WANTED));
            d.see(() -> {
                assertEquals(0, d.counts.spans);
                assertEquals(Map.of("not_wanted", 9L), d.counts.lost);
            });
            d.setFeatures(Map.of("stats", true));
            Samples.eventually("it is wanted", () -> c.features().stats());
            assertEquals(3, Samples.publish(c, 3));
            assertTrue(c.close(Duration.ofMinutes(1)));
            Samples.checkBooks(c, 12);
            assertEquals(3, d.spans());
        }
    }

    /** Changing a tag list after the call has no effect. */
    @Test
    void tagList_canBeReused() throws Exception {
        try (FakeDaemon d = new FakeDaemon().start()) {
            SpanstatsClient c = Samples.open(d, b -> {});
            Tags tags = new Tags();
            Labels labels = new Labels();
            Counts want = new Counts();
            for (int i = 0; i < 100; i++) {
                Samples.Span s = Samples.sample(i);
                s.labels.set(7, List.of("a:" + i % 3, "b:2"));
                s.count(want);
                s.count(want);
                tags.clear();
                tags.add("a", "" + i % 3).add("b:2");
                labels.clear().service(s.text(0)).operation(s.text(1)).resource(s.text(2)).type(s.text(3)).kind(s.text(4))
                        .traceRoot(TraceRoot.TRUE).httpStatus(200).peerTags(tags).httpMethod("GET").httpEndpoint(s.text(9));
                assertTrue(c.publish(labels, s.duration, s.end, s.flags));
                assertTrue(c.publish(s.text(0), s.text(1), s.text(2), s.text(3), s.text(4), s.root(), 200, tags, s.text(8), s.text(9),
                        null, null, false, null, s.duration, s.end, s.flags, 1));
            }
            assertTrue(c.close(Duration.ofMinutes(1)));
            assertEquals(want.byKey, d.counts.byKey);
        }
    }

    @Test
    void invalidConfig_isRejected() {
        Config.Builder[] builders = {
            Config.builder().socket("/" + "x".repeat(107)), Config.builder().bufferBytes(100_000), Config.builder().bufferBytes(-1),
            Config.builder().maxKept(-1), Config.builder().maxKept(Integer.MAX_VALUE), Config.builder().maxKeys(-1), Config.builder().maxKeys(1 << 20), Config.builder().maxAge(Duration.ofSeconds(-1)),
            Config.builder().maxBackoff(Duration.ZERO), Config.builder().maxAway(Duration.ofDays(1000)),
        };
        for (Config.Builder b : builders) assertThrows(IllegalArgumentException.class, b::build);
    }
}
