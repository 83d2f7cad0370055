package io.github.spanstatsd.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

class BufferTest {
    private final Random r = new Random(5);

    /** Returns a sealed buffer with several messages, all keys in full. */
    private Buffer filled(Counts model, int spans) {
        Buffer buffer = new Buffer(0, ByteBuffer.allocateDirect(Buffer.BYTES));
        buffer.empty(null);
        for (int i = 0; i < spans; i++) put(buffer, Samples.random(r), model);
        buffer.seal();
        return buffer;
    }

    private static void put(Buffer buffer, Samples.Span s, Counts model) {
        EncodedKey key = EncodedKey.of(s.inLabels());
        if (buffer.left() < Buffer.ROOM + key.bytes.length) return;
        int from = buffer.beginWhole(s.weight);
        for (int i = 0; i < key.bytes.length; i++) buffer.memory().put(from + i, key.bytes[i]);
        buffer.endWhole(from, from + key.bytes.length, s.duration, s.end, s.flags, s.weight);
        s.count(model);
    }

    private static ByteBuffer copy(ByteBuffer bytes) {
        return ByteBuffer.allocate(bytes.remaining()).put(bytes).flip();
    }

    /** Written snapshots of any shape are decoded to the same values. */
    @Test
    void snapshots_decodeToSameValues() {
        for (int round = 0; round < 50; round++) {
            Counts model = new Counts();
            Counts got = new Counts();
            Buffer buffer = filled(model, r.nextInt(600));
            got.replay(new Counts.Numbers(), buffer.bytes());
            assertEquals(model.byKey, got.byKey);
            assertEquals(model.spans, buffer.spans);
            assertTrue(got.mostInABatch <= 256);
        }
    }

    /** Invalid weights are replaced by the nearest weight that the daemon accepts. */
    @Test
    void invalidWeight_isReplacedByNearestValid() {
        double[][] cases = {{0, 1}, {-3, 1}, {Double.NaN, 1}, {Double.POSITIVE_INFINITY, 1L << 32}, {Double.NEGATIVE_INFINITY, 1},
                {1e12, 1L << 32}, {0.25, 0.25}, {Double.MIN_VALUE, Double.MIN_VALUE}};
        for (double[] c : cases) {
            Counts got = new Counts();
            Buffer buffer = new Buffer(0, ByteBuffer.allocateDirect(Buffer.BYTES));
            buffer.empty(null);
            Samples.Span s = Samples.sample(0);
            s.weight = c[0];
            s.duration = -5;
            put(buffer, s, new Counts());
            buffer.seal();
            got.replay(new Counts.Numbers(), buffer.bytes());
            Counts.Tally tally = got.byKey.values().iterator().next();
            assertEquals(c[1], tally.weight);
            assertEquals(0, tally.duration);
        }
    }

    /**
     * A buffer is cut at any offset: the messages read before the cut and those sent afterwards
     * contain every span once.
     */
    @Test
    void cut_atAnyOffset_deliversEachSpanOnce() {
        Counts model = new Counts();
        Buffer whole = filled(model, 700);
        byte[] bytes = copy(whole.bytes()).array();
        List<Integer> cuts = new ArrayList<>();
        for (int i = 0; i <= bytes.length; i += 97) cuts.add(i);
        for (int end = 0; end < bytes.length;) {
            for (int near : new int[] {end, end + 1, end + 4}) cuts.add(near);
            end += 4 + ByteBuffer.wrap(bytes).getInt(end);
            cuts.add(end - 1);
        }
        cuts.add(bytes.length);
        for (int cut : cuts) {
            Buffer buffer = new Buffer(0, ByteBuffer.allocateDirect(Buffer.BYTES));
            r.setSeed(5);
            Counts again = new Counts();
            buffer = filled(again, 700);
            ByteBuffer sent = copy(buffer.bytes());
            sent.limit(cut);
            Counts got = new Counts();
            int before = buffer.spans;
            got.replay(new Counts.Numbers(), sent);
            assertEquals(got.spans, buffer.handOver(cut), "cut at " + cut);
            assertEquals(before - got.spans, buffer.spans);
            got.replay(new Counts.Numbers(), buffer.bytes());
            assertEquals(again.byKey, got.byKey, "cut at " + cut);
        }
    }

    /** The rest of a cut buffer can be cut again. */
    @Test
    void cut_restCanBeCutAgain() {
        Counts model = new Counts();
        Counts got = new Counts();
        Buffer buffer = filled(model, 700);
        while (buffer.spans > 0) {
            ByteBuffer bytes = copy(buffer.bytes()); // one message and a little of the next
            bytes.limit(Math.min(bytes.limit(), 4 + bytes.getInt(0) + 20));
            int cut = bytes.limit();
            got.replay(new Counts.Numbers(), bytes);
            assertTrue(buffer.handOver(cut) > 0, "a whole message was not handed over");
        }
        assertEquals(model.byKey, got.byKey);
    }

    @Test
    void pool_buffersHaveOneOwner() throws Exception {
        Pool pool = new Pool(5 * Buffer.BYTES, 0);
        int[] owners = new int[5];
        List<String> wrong = java.util.Collections.synchronizedList(new ArrayList<>());
        List<Thread> threads = new ArrayList<>();
        for (int t = 0; t < 8; t++) {
            threads.add(new Thread(() -> {
                for (int i = 0; i < 20_000; i++) {
                    Buffer b = pool.take(null);
                    if (b == null) continue;
                    if (++owners[b.index] != 1) wrong.add("buffer " + b.index + " has two owners");
                    owners[b.index]--;
                    pool.give(b);
                }
            }));
        }
        for (Thread thread : threads) thread.start();
        for (Thread thread : threads) thread.join();
        assertEquals(List.of(), wrong);
        for (int i = 0; i < 5; i++) assertTrue(pool.take(null) != null, i + " of 5 are left");
        assertEquals(null, pool.take(null));
    }

    /**
     * A thread that is suspended between reading and replacing the head of a stack fails, although
     * the same buffer is on top again (ABA).
     */
    @Test
    void pool_detectsReusedHead() {
        long head = Pool.changed(7, 3);
        assertEquals(3, (int) head);
        assertTrue(Pool.changed(head, 3) != head);
    }

    /**
     * Memory for kept spans is allocated when needed, and does not take buffers from unsent spans.
     */
    @Test
    void pool_memoryForKeptSpansIsBounded() {
        Pool pool = new Pool(2 * Buffer.BYTES, 3 * Buffer.BYTES + 5);
        int kept = 0;
        for (; pool.ensureSpare(kept + 1); kept++) assertTrue(pool.take(null) != null);
        assertEquals(3, kept);
        assertTrue(pool.ensureSpare(3));
        for (int i = 0; i < 2; i++) assertTrue(pool.take(null) != null);
        assertEquals(null, pool.take(null));
        assertFalse(new Pool(2 * Buffer.BYTES, Buffer.BYTES - 1).ensureSpare(1));
    }

    @Test
    void sealedBuffers_keepOrder() {
        Pool pool = new Pool(4 * Buffer.BYTES, 0);
        List<Buffer> sealed = new ArrayList<>();
        for (int i = 0; i < 3; i++) pool.seal(pool.take(null));
        pool.takeSealed(sealed);
        for (int i = 0; i < 3; i++) assertEquals(i, sealed.get(i).index);
    }
}
