package io.github.spanstatsd.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/**
 * Random sequences of daemons that settle spans and crash, compared with a model that identifies
 * every span by its end time: each span is delivered once or counted by the client, and none is
 * delivered twice. A failure prints the seed.
 */
class KeptLivesTest {
    private static final long[] SEEDS = {1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233};

    private final Map<Long, String> published = new HashMap<>();
    private final Map<Long, Integer> delivered = new HashMap<>();
    private final List<Long> mangled = new ArrayList<>();
    private FakeDaemon daemon;
    private Random random;
    private long ambiguous;
    private long offered;

    @Test
    void restarts_everySpanIsDeliveredOnceOrCounted() throws Exception {
        for (long seed : SEEDS) {
            published.clear();
            delivered.clear();
            ambiguous = offered = 0;
            live(seed);
        }
    }

    private void live(long seed) throws Exception {
        random = new Random(seed);
        boolean isBounded = seed % 3 == 0;
        try (FakeDaemon d = new FakeDaemon()) {
            daemon = d;
            d.settles = d.remembers = true;
            d.maxKeys = 1024;
            d.answer = id -> null;
            d.onSpan = this::check;
            d.start();
            SpanstatsClient c = Samples.open(d, b -> b.maxAge(Duration.ofMillis(1)).bufferBytes(16 << 20)
                    .maxKept(isBounded ? 2 * Buffer.BYTES : 16 << 20).maxKeys(random.nextInt(3) * 500));
            for (int i = 0; i < 40; i++) step(c, random.nextInt(12));
            d.see(() -> d.answer = id -> {
                deliver(d.last(), d.last().ends.size());
                return FakeDaemon.ok(id);
            });
            assertTrue(c.close(Duration.ofMinutes(1)), "seed " + seed);
            compare(c.stats(), "seed " + seed + ": " + c.stats());
            if (!isBounded) assertEquals(0, c.stats().unconfirmed(), "seed " + seed);
            Samples.checkBooks(c, offered);
        }
    }

    private void compare(Stats s, String what) {
        assertEquals(List.of(), mangled, what);
        assertEquals(offered, published.size(), what);
        assertTrue(delivered.values().stream().allMatch(times -> times == 1), what);
        assertEquals(published.size(), delivered.size() + s.unconfirmed() + s.lost(), what);
        assertEquals(ambiguous, s.ambiguous(), what);
        assertEquals(0, s.unsettled() + s.lost() + s.refused(), what);
        // A report to a daemon that was killed before reading it is lost.
        assertTrue(s.ambiguous() >= daemon.counts.lost.getOrDefault("ambiguous", 0L), what);
        assertTrue(s.unconfirmed() >= daemon.counts.lost.getOrDefault("daemon_died", 0L), what);
    }

    /**
     * An arriving span has the same content as the published span with that end time, also when it
     * is replayed.
     */
    private void check(String key, List<Object> snapshot) {
        Long end = (Long) snapshot.get(2);
        if (!(key + " " + snapshot.get(1)).equals(published.get(end))) mangled.add(end);
    }

    private void step(SpanstatsClient c, int what) throws Exception {
        switch (what) {
            case 0: case 1: case 2: case 3:
                publish(c, 1 + random.nextInt(1 << 3 + random.nextInt(8)));
                break;
            case 4: case 5:
                Samples.eventually("all is sent", () -> c.stats().buffered() == 0 || !c.stats().connected());
                break;
            case 6: case 7:
                long upTo = settle();
                if (upTo > 0 && random.nextBoolean()) daemon.settle(upTo);
                break;
            case 8:
                daemon.see(() -> daemon.greeting = () -> ByteBuffer.wrap(new byte[] {0, 0, 0, 0})); // not a valid welcome, for a while
                die();
                daemon.start();
                Thread.sleep(random.nextInt(5));
                daemon.kill();
                daemon.see(() -> daemon.greeting = null);
                daemon.start();
                break;
            case 9:
                daemon.stop();
                daemon.see(() -> open().forEach(of -> close(of, of.ends.size())));
                daemon.start();
                break;
            default:
                die();
                daemon.start();
        }
    }

    private void publish(SpanstatsClient c, int spans) {
        for (int i = 0; i < spans; i++) {
            Samples.Span s = Samples.random(random);
            s.end = offered++;
            daemon.see(() -> published.put(s.end, HexFormat.of().formatHex(s.key()) + " " + Math.max(0, s.duration)));
            assertTrue(s.publish(c), c.stats()::toString);
        }
    }

    /** Returns the records of connections that have not ended. */
    private List<FakeDaemon.Record> open() {
        return daemon.records.values().stream().filter(of -> !of.isClosed).collect(Collectors.toList());
    }

    /** A destination accepts the spans up to a random bound. */
    private long settle() {
        synchronized (daemon) {
            FakeDaemon.Record last = open().isEmpty() ? null : open().get(open().size() - 1);
            if (last == null || last.bounds.isEmpty()) return 0;
            long upTo = Math.max(last.settled(), last.bounds.get(random.nextInt(last.bounds.size())));
            deliver(last, upTo);
            return upTo;
        }
    }

    private void deliver(FakeDaemon.Record of, long upTo) {
        for (long i = of.settled(); i < upTo; i++) delivered.merge(of.ends.get((int) i), 1, Integer::sum);
        of.outcomes.set(0, Math.max(of.settled(), upTo));
    }

    private void close(FakeDaemon.Record of, long delivered) {
        deliver(of, delivered);
        of.isClosed = true;
    }

    /** Kills the daemon while some of its spans are being exported. */
    private void die() throws Exception {
        daemon.kill();
        daemon.see(() -> open().forEach(of -> {
            long at = of.settled();
            for (int bound : of.bounds) {
                if (bound <= at || random.nextInt(3) > 0) continue;
                long what = 1 + random.nextInt(2);
                of.outcomes.addAll(List.of((long) bound, what));
                for (; at < bound; at++) {
                    if (what == 2) continue;
                    ambiguous++;
                    delivered.merge(of.ends.get((int) at), 1, Integer::sum); // otherwise the client counts it
                }
            }
            close(of, of.settled());
        }));
    }
}
