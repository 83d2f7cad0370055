package io.github.spanstatsd.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

/** Many threads publish while daemons start and stop. */
class HammerTest {
    /** Threads that publish, and one that checks the accounting, until they are stopped. */
    private static final class Load {
        final AtomicLong offered = new AtomicLong();
        final List<String> wrong = Collections.synchronizedList(new ArrayList<>());
        private final List<Thread> threads = new ArrayList<>();
        private volatile boolean isOver;

        /** mayFall: replayed spans decrease the number of sent spans. */
        Load(SpanstatsClient c, boolean mayFall) {
            for (int t = 0; t < 6; t++) {
                Random r = new Random(t);
                threads.add(thread(t % 2 == 0, () -> {
                    List<Samples.Span> spans = new ArrayList<>();
                    for (int i = 0; i < 500; i++) spans.add(Samples.random(r));
                    while (!isOver) {
                        for (int i = 1 + r.nextInt(80); i > 0; i--) {
                            spans.get(r.nextInt(spans.size())).publish(c);
                            offered.incrementAndGet();
                        }
                        if (r.nextInt(4) == 0) Thread.yield();
                        if (r.nextInt(8) == 0) pause(1);
                    }
                }));
            }
            threads.add(new Thread(() -> {
                Stats before = c.stats();
                while (!isOver) {
                    Stats s = c.stats();
                    if (s.buffered() < 0 || s.sent() < before.sent() && !mayFall || s.published() < before.published()) {
                        wrong.add("stats went from " + before + " to " + s);
                    }
                    before = s;
                    pause(1);
                }
            }));
            threads.forEach(Thread::start);
        }

        void stop() throws InterruptedException {
            isOver = true;
            for (Thread thread : threads) thread.join();
            assertEquals(List.of(), wrong);
        }
    }

    /** Returns a virtual thread if Java supports it. */
    private static Thread thread(boolean isVirtual, Runnable run) {
        try {
            Object builder = isVirtual ? Thread.class.getMethod("ofVirtual").invoke(null) : null;
            return isVirtual ? (Thread) Class.forName("java.lang.Thread$Builder").getMethod("unstarted", Runnable.class).invoke(builder, run)
                    : new Thread(run);
        } catch (ReflectiveOperationException e) {
            return new Thread(run);
        }
    }

    private static void pause(long millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    /**
     * A daemon has counted every span that the client counts as sent, and every other span is in a
     * counter.
     */
    @Test
    void load_withDaemonsThatStopAndPause() throws Exception {
        try (FakeDaemon d = new FakeDaemon().start()) {
            SpanstatsClient c = Samples.open(d, b -> b.bufferBytes(8 * Buffer.BYTES).maxAge(Duration.ofMillis(1)).maxAway(Duration.ofMillis(2)));
            Load load = new Load(c, false);
            Random r = new Random(8);
            for (int i = 0; i < 40; i++) {
                pause(r.nextInt(15));
                switch (r.nextInt(4)) {
                    case 0: case 1:
                        d.stop();
                        pause(r.nextInt(2) * 10L); // longer than maxAway, or not
                        d.start();
                        break;
                    case 2:
                        Runnable goOn = d.pause();
                        pause(5);
                        goOn.run();
                        break;
                    default:
                        d.setFeatures(Map.of("stats", r.nextInt(3) > 0));
                }
            }
            d.setFeatures(Map.of("stats", true));
            load.stop();
            flushThrough(c);
            assertTrue(c.close(Duration.ofMinutes(1)));
            d.stop();
            Samples.checkBooks(c, load.offered.get());
            Stats s = c.stats();
            assertEquals(s.sent(), d.counts.spans, s::toString);
            assertTrue(s.connects() >= 3 && s.sent() > 0, s::toString);
            long heard = d.counts.lost.values().stream().mapToLong(n -> n).sum();
            assertTrue(heard <= s.refused() + s.lost(), heard + " were heard of, " + s);
        }
    }

    /**
     * A killed daemon loses the data that it had not read. The accounting still balances, and no
     * span is counted twice.
     */
    @Test
    void load_withKilledDaemons() throws Exception {
        try (FakeDaemon d = new FakeDaemon().start()) {
            SpanstatsClient c = Samples.open(d, b -> b.maxAge(Duration.ofMillis(1)));
            Load load = new Load(c, false);
            for (int i = 0; i < 20; i++) {
                pause(10);
                d.kill();
                d.start();
            }
            load.stop();
            flushThrough(c);
            c.close(Duration.ofMinutes(1));
            d.stop();
            Samples.checkBooks(c, load.offered.get());
            assertTrue(d.counts.spans <= c.stats().sent());
        }
    }

    /**
     * The same with daemons that know their predecessors: spans that one has read are delivered,
     * and the next one receives the rest.
     */
    @Test
    void load_withKilledDaemonsAndReplay() throws Exception {
        try (FakeDaemon d = new FakeDaemon()) {
            d.settles = d.remembers = true;
            d.start();
            SpanstatsClient c = Samples.open(d, b -> b.maxAge(Duration.ofMillis(1)).maxKept(64 << 20));
            Load load = new Load(c, true);
            for (int i = 0; i < 20; i++) {
                pause(10);
                d.kill();
                d.see(() -> d.records.values().forEach(of -> of.outcomes.set(0, (long) of.ends.size())));
                d.start();
            }
            load.stop();
            assertTrue(c.close(Duration.ofMinutes(1)));
            d.stop();
            Samples.checkBooks(c, load.offered.get());
            Stats s = c.stats();
            assertEquals(s.published(), d.counts.spans, s::toString);
            assertEquals(0, s.unconfirmed() + s.ambiguous() + s.unsettled(), s::toString);
        }
    }

    /**
     * Many threads use thousands of new keys at the same time. Each span is counted under its key,
     * sent by number or in full.
     */
    @Test
    void load_withGrowingTables() throws Exception {
        try (FakeDaemon d = new FakeDaemon()) {
            d.maxKeys = 8192;
            d.maxKeyBytes = 8 << 20;
            d.start();
            SpanstatsClient c = Samples.open(d, b -> b.bufferBytes(64 << 20).maxAge(Duration.ofMillis(1)));
            Samples.eventually("it is connected", () -> c.stats().connected());
            Counts want = new Counts();
            List<Samples.Span> spans = new ArrayList<>();
            for (int i = 0; i < 3000; i++) {
                Samples.Span s = Samples.sample(i);
                s.labels.set(2, "resource " + i);
                spans.add(s);
            }
            List<Thread> threads = new ArrayList<>();
            AtomicLong refused = new AtomicLong();
            for (int t = 0; t < 4; t++) {
                List<Samples.Span> own = new ArrayList<>();
                for (int round = 0; round < 4; round++) own.addAll(spans);
                Collections.shuffle(own, new Random(t));
                own.forEach(s -> s.count(want));
                threads.add(thread(t == 0, () -> {
                    for (Samples.Span s : own) {
                        while (!s.publish(c)) refused.incrementAndGet(); // all stripes were claimed
                    }
                }));
            }
            threads.forEach(Thread::start);
            for (Thread thread : threads) thread.join();
            c.flush().get();
            assertTrue(c.stats().knownKeys() > 2500, c.stats()::toString);
            assertTrue(c.close(Duration.ofMinutes(1)));
            d.stop();
            assertEquals(List.of(), d.faults);
            assertEquals(want.byKey, d.counts.byKey);
            Samples.checkBooks(c, want.spans + refused.get());
        }
    }

    /** Flushes until a daemon replies: a killed daemon can have lost the request. */
    private static void flushThrough(SpanstatsClient c) throws InterruptedException {
        while (true) {
            try {
                c.flush().get();
                return;
            } catch (ExecutionException e) {
                assertTrue(e.getMessage().contains("flush again"), e.getMessage());
            }
        }
    }
}
