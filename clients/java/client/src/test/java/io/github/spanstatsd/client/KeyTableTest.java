package io.github.spanstatsd.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

class KeyTableTest {
    private static EncodedKey key(String resource) {
        return EncodedKey.of(new Labels().service("shop").operation("op").resource(resource));
    }

    private static KeyTable table(int most) throws Exception {
        KeyTable table = new KeyTable(most);
        table.limit(welcome(1 << 20, 1 << 30));
        return table;
    }

    private static Welcome welcome(long keys, long bytes) {
        Welcome welcome = new Welcome();
        welcome.maxKeys = keys;
        welcome.maxKeyBytes = bytes;
        return welcome;
    }

    /**
     * Compares the table with a map: a key always has the same number, numbers start at 0, and an
     * unknown key is not found.
     */
    @Test
    void numbers_matchMap() throws Exception {
        KeyTable table = table(3000);
        Map<String, Integer> model = new HashMap<>();
        Random r = new Random(4);
        for (int i = 0; i < 20_000; i++) {
            String resource = "r" + r.nextInt(4000);
            EncodedKey key = key(resource);
            Key found = key.labels.findIn(table);
            assertEquals(model.get(resource), found == null ? null : (Integer) found.number());
            if (found == null && (found = table.learn(key.bytes.length, key.labels)) != null) {
                assertEquals(model.size(), found.number());
                model.put(resource, found.number());
                assertSame(found, table.key(found.number()));
            }
        }
        assertTrue(model.size() > 2950, "only " + model.size() + " of 3000 found a place");
        assertEquals(model.size(), table.count());
    }

    /** Keys with equal hashes are distinguished. */
    @Test
    void equalHashes_areDistinguished() throws Exception {
        assertEquals("Aa".hashCode(), "BB".hashCode());
        KeyTable table = table(100);
        EncodedKey one = key("Aa");
        EncodedKey other = key("BB");
        assertEquals(one.labels.hash, other.labels.hash);
        Key first = table.learn(one.bytes.length, one.labels);
        assertNull(other.labels.findIn(table));
        Key second = table.learn(other.bytes.length, other.labels);
        assertNotSame(first, second);
        assertSame(first, one.labels.findIn(table));
        assertSame(second, other.labels.findIn(table));
    }

    /**
     * For labels chosen to have equal hashes, only a few keys are learned, and lookups stay fast.
     */
    @Test
    void equalHashes_fewKeysAreLearned() throws Exception {
        KeyTable table = table(4096);
        int learned = 0;
        for (int i = 0; i < 1024; i++) {
            StringBuilder resource = new StringBuilder();
            for (int bit = 0; bit < 10; bit++) resource.append((i >> bit & 1) == 0 ? "Aa" : "BB");
            EncodedKey key = key(resource.toString());
            learned += table.learn(key.bytes.length, key.labels) == null ? 0 : 1;
        }
        assertEquals(8, learned);
    }

    /** Changes each label in turn, and expects another key. */
    @Test
    void changedLabel_isAnotherKey() throws Exception {
        List<Consumer<Labels>> changes = new ArrayList<>();
        changes.add(l -> l.service("shopx"));
        changes.add(l -> l.operation("x"));
        changes.add(l -> l.resource("x"));
        changes.add(l -> l.type(""));
        changes.add(l -> l.kind(null));
        changes.add(l -> l.traceRoot(TraceRoot.FALSE));
        changes.add(l -> l.traceRoot(TraceRoot.NOT_SET));
        changes.add(l -> l.httpStatus(201));
        changes.add(l -> l.httpMethod("PUT"));
        changes.add(l -> l.httpEndpoint("/"));
        changes.add(l -> l.grpcStatus("6"));
        changes.add(l -> l.serviceSource("n"));
        changes.add(l -> l.synthetics(false));
        changes.add(l -> l.peerTags(null));
        changes.add(l -> l.peerTag("c", "d"));
        changes.add(l -> l.peerTags(new Tags().add("a", "x")));
        changes.add(l -> l.peerTags(new Tags().add("x", "b")));
        changes.add(l -> l.peerTags(new Tags().add("t", "u")).additionalTags(new Tags().add("a", "b")));
        changes.add(l -> l.additionalTags(null));
        changes.add(l -> l.additionalTag("c:d"));
        KeyTable table = table(100);
        EncodedKey whole = EncodedKey.of(whole());
        assertNotNull(table.learn(whole.bytes.length, whole.labels));
        assertNotNull(EncodedKey.of(whole()).labels.findIn(table));
        for (int i = 0; i < changes.size(); i++) {
            Labels l = whole();
            changes.get(i).accept(l);
            assertNull(EncodedKey.of(l).labels.findIn(table), "change " + i);
        }
    }

    /** Returns new strings each time, so that no two are the same object. */
    private static Labels whole() {
        return new Labels().service(fresh("shop")).operation(fresh("op")).resource(fresh("GET /")).type(fresh("web")).kind(fresh("server"))
                .traceRoot(TraceRoot.TRUE).httpStatus(200).peerTag(fresh("a"), fresh("b")).httpMethod(fresh("GET"))
                .httpEndpoint(fresh("/x")).grpcStatus(fresh("5")).serviceSource(fresh("m")).synthetics(true)
                .additionalTag(fresh("t"), fresh("u"));
    }

    private static String fresh(String s) {
        return new String(s.toCharArray());
    }

    /**
     * Later changes of a caller's labels do not affect a key, and the table does not refer to the
     * caller's strings.
     */
    @Test
    void callersLabels_areCopied() {
        String label = fresh("a label that nobody else has " + System.nanoTime());
        String copy = Key.copy(label);
        assertEquals(label, copy);
        assertNotSame(label, copy);
        assertSame("GET", Key.copy(fresh("GET")), "of a constant there is one");
        Labels labels = whole();
        EncodedKey key = EncodedKey.of(labels);
        byte[] before = key.bytes.clone();
        labels.clear();
        java.nio.ByteBuffer b = java.nio.ByteBuffer.allocate(1000);
        assertEquals(before.length, key.labels.put(b, 0));
        org.junit.jupiter.api.Assertions.assertArrayEquals(before, java.util.Arrays.copyOf(b.array(), before.length));
    }

    /** The table obeys the daemon's limits, also if the next daemon's are lower. */
    @Test
    void limitsOfDaemon_areObeyed() throws Exception {
        KeyTable table = new KeyTable(4096);
        fill(table, 4096, 10);
        assertTrue(table.count() > 50 && table.count() <= 65536 / 2 / KeyTable.costOf(10), "before a daemon has said what it takes: " + table.count());
        table.limit(welcome(500, 1 << 30));
        fill(table, 5000, 10);
        assertEquals(500, table.count());
        assertTrue(table.isFull());
        table.limit(welcome(8192, 256 << 10));
        fill(table, 6000, 10);
        assertTrue(table.fits(welcome(8192, 256 << 10)));
        assertFalse(table.fits(welcome(499, 1 << 30)));
        assertFalse(table.fits(welcome(8192, 500 * 128)));
        assertFalse(table.fits(welcome(8192, 2 * 500 * KeyTable.costOf(10) - 2)), "two tables have room at once");
        KeyTable heavy = table(4096);
        fill(heavy, 4096, 1500);
        assertTrue(heavy.count() * 1500 <= 128 * 4096, "the copies of labels have a bound: " + heavy.count());
        fill(heavy, 10, 3000);
        KeyTable none = table(0);
        fill(none, 10, 10);
        assertEquals(0, none.count());
    }

    private static void fill(KeyTable table, int keys, int length) {
        for (int i = 0; i < keys; i++) {
            EncodedKey key = key(length + "r" + i + "x".repeat(length));
            table.learn(key.bytes.length, key.labels);
        }
    }

    /** Unique keys are not learned, however many there are; recurring keys are. */
    @Test
    void key_isLearnedAtSecondUse() throws Exception {
        KeyTable table = table(4096);
        int again = 0;
        for (int i = 1; i <= 100_000; i++) again += table.wasSeenBefore(i * 0x9e3779b1) ? 1 : 0;
        assertEquals(0, again);
        assertTrue(table.wasSeenBefore(100_000 * 0x9e3779b1));
    }

    /** The number of slots for hashes grows with their number, and no hash is lost in that. */
    @Test
    void notedHashes_grow() throws Exception {
        KeyTable table = table(4096);
        for (int hash = 1; hash < 4096; hash++) assertFalse(table.wasSeenBefore(hash));
        for (int hash = 1; hash < 4096; hash++) assertTrue(table.wasSeenBefore(hash), "hash " + hash);
        for (int hash = 4096; hash < 8192; hash++) assertFalse(table.wasSeenBefore(hash));
        for (int hash = 4096; hash < 8192; hash++) assertTrue(table.wasSeenBefore(hash), "hash " + hash);
    }

    /** Memory is allocated as needed, not in advance. */
    @Test
    void memory_isAllocatedAsNeeded() throws Exception {
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        KeyTable[] tables = new KeyTable[10];
        long least = Long.MAX_VALUE;
        for (int i = 0; i < tables.length; i++) {
            long before = threads.getThreadAllocatedBytes(Thread.currentThread().getId());
            tables[i] = new KeyTable(1 << 16);
            least = Math.min(least, threads.getThreadAllocatedBytes(Thread.currentThread().getId()) - before);
        }
        assertTrue(least < 8192, least + " bytes");
    }

    /**
     * A thread that knows that a key was learned finds it with its number, even while the table
     * grows.
     */
    @Test
    void lookup_whileTableGrows() throws Exception {
        List<EncodedKey> keys = new ArrayList<>();
        for (int i = 0; i < 4096; i++) keys.add(key("r" + i));
        for (int round = 0; round < 10; round++) {
            KeyTable table = table(4000);
            AtomicIntegerArray model = new AtomicIntegerArray(keys.size()); // number of each key plus one
            AtomicInteger done = new AtomicInteger();
            List<String> wrong = Collections.synchronizedList(new ArrayList<>());
            List<Thread> readers = new ArrayList<>();
            for (int t = 0; t < 3; t++) {
                Random r = new Random(t);
                readers.add(new Thread(() -> {
                    while (done.get() < keys.size()) {
                        int i = r.nextInt(Math.min(keys.size(), done.get() + 10));
                        int before = model.get(i);
                        Key found = keys.get(i).labels.findIn(table);
                        if (before > 0 && (found == null || found.number() != before - 1 || table.key(before - 1) != found)
                                || found != null && (found.number() >= table.count() || table.key(found.number()) != found)) {
                            wrong.add("key " + i + " had number " + (before - 1) + " and then " + (found == null ? "none" : found.number()));
                        }
                    }
                }));
            }
            for (Thread reader : readers) reader.start();
            for (EncodedKey key : keys) {
                Key learned = table.learn(key.bytes.length, key.labels);
                model.set(done.get(), learned == null ? 0 : learned.number() + 1);
                done.incrementAndGet();
            }
            for (Thread reader : readers) reader.join();
            assertEquals(List.of(), wrong);
            assertTrue(table.count() > 3900, table.count() + " keys");
            for (int i = 0; i < keys.size(); i++) {
                Key found = keys.get(i).labels.findIn(table);
                assertEquals(model.get(i), found == null ? 0 : found.number() + 1);
            }
        }
    }

    /** Many threads learn the same keys: each key gets one number. */
    @Test
    void learn_byManyThreads_givesOneNumber() throws Exception {
        KeyTable table = table(2000);
        List<EncodedKey> keys = new ArrayList<>();
        for (int i = 0; i < 1000; i++) keys.add(key("r" + i));
        List<Thread> threads = new ArrayList<>();
        List<String> wrong = Collections.synchronizedList(new ArrayList<>());
        for (int t = 0; t < 4; t++) {
            threads.add(new Thread(() -> {
                Map<EncodedKey, Integer> seen = new HashMap<>();
                for (int round = 0; round < 20; round++) {
                    for (EncodedKey key : keys) {
                        Key known = key.labels.findIn(table);
                        if (known == null) known = table.learn(key.bytes.length, key.labels);
                        if (known == null) continue;
                        Integer before = seen.put(key, known.number());
                        if (before != null && before != known.number() || table.key(known.number()) != known || known.number() >= table.count()) {
                            wrong.add("number " + known.number());
                        }
                    }
                }
            }));
        }
        for (Thread thread : threads) thread.start();
        for (Thread thread : threads) thread.join();
        assertEquals(List.of(), wrong);
        assertTrue(table.count() > 900 && table.count() <= 1000, table.count() + " numbers");
    }
}
