package io.github.spanstatsd.client;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** The outcomes of spans that were sent to an earlier daemon, and their effect on a buffer. */
class OutcomesTest {
    /** The example from the protocol's vectors. */
    @Test
    void pairs_asInVectors() {
        Outcomes outcomes = new Outcomes(List.of(50L, 0L, 80L, 1L, 480L, 2L), 20);
        assertFalse(outcomes.countReplayable(0, 20));
        assertFalse(outcomes.countReplayable(20, 50));
        assertFalse(outcomes.countReplayable(50, 80));
        assertTrue(outcomes.countReplayable(80, 480));
        assertTrue(outcomes.countReplayable(480, 481)); // after the last pair
        outcomes.countMissed(0, 490);
        assertEquals(30 + 30, outcomes.ambiguous);
        assertEquals(401, outcomes.replayed);
        assertEquals(410, outcomes.lost);
    }

    /** Settlement reported by the crashed daemon is final, whatever the next one reports. */
    @Test
    void settled_isFinal() {
        Outcomes outcomes = new Outcomes(List.of(10L, 0L), 20);
        assertFalse(outcomes.countReplayable(10, 20));
        assertTrue(outcomes.countReplayable(20, 30));
        outcomes.countMissed(0, 25);
        assertEquals(5, outcomes.lost);
    }

    @Test
    void unknownConnection_resendsNothing() {
        Outcomes outcomes = new Outcomes(List.of(), 5);
        assertFalse(outcomes.countReplayable(0, 5));
        assertFalse(outcomes.countReplayable(5, 9));
        outcomes.countMissed(0, 7);
        assertEquals(6, outcomes.lost);
        assertEquals(0, outcomes.ambiguous + outcomes.replayed);
    }

    /** An outcome of a later protocol version, and an invalid pair. */
    @Test
    void unknownOutcome_isReplayable() {
        Outcomes outcomes = new Outcomes(List.of(10L, 7L, 20L), 0);
        assertTrue(outcomes.countReplayable(0, 10));
        assertTrue(outcomes.countReplayable(10, 20));
    }

    /** Compares buffers that were merged and filtered with lists of spans. */
    @Test
    void filter_mergesBuffers() {
        for (int seed = 1; seed <= 200; seed++) {
            Random r = new Random(seed);
            List<List<Long>> messages = new ArrayList<>(); // end times of their spans
            Buffer kept = null;
            for (int i = 1 + r.nextInt(8); i > 0; i--) {
                Buffer piece = filled(messages, 1 + r.nextInt(400), seed * 100_000L + i * 1000);
                int drop = r.nextInt(3) == 0 ? drop(messages, piece) : 0;
                assertEquals(piece.spans, piece.handOver(piece.bytes().remaining()), "dropped " + drop);
                if (kept == null) kept = piece;
                else if (kept.takes(piece)) kept.append(piece);
                else messages.subList(messages.size() - parts(piece), messages.size()).clear();
            }
            List<Long> pairs = new ArrayList<>(List.of(0L, 0L));
            List<Long> again = new ArrayList<>();
            long at = 70; // number of spans before the buffer
            for (List<Long> message : messages) {
                at += message.size();
                int what = r.nextInt(3);
                pairs.add(at);
                pairs.add((long) what);
                if (what == 2) again.addAll(message);
            }
            Outcomes outcomes = new Outcomes(pairs, 0);
            assertEquals(at - 70, kept.handed, "seed " + seed);
            kept.retainUndelivered(70, outcomes);
            assertEquals(again, ends(kept.bytes()), "seed " + seed);
            assertEquals(again.size(), kept.spans);
            assertEquals(again.size(), outcomes.replayed);
            assertEquals(0, kept.handed);
        }
    }

    /** A partially handed-over buffer keeps the rest, whatever the outcome of the first part. */
    @Test
    void filter_keepsUnsentRest() {
        for (boolean isKnown : new boolean[] {true, false}) {
            List<List<Long>> messages = new ArrayList<>();
            Buffer buffer = filled(messages, 600, 0);
            int first = 4 + buffer.bytes().getInt(0);
            assertEquals(256, buffer.handOver(first + 10));
            buffer.retainUndelivered(0, new Outcomes(isKnown ? List.of(0L, 0L) : List.of(), 0));
            assertEquals(isKnown ? 600 : 344, buffer.spans);
            assertEquals(messages.get(1).get(0), ends(buffer.bytes()).get(isKnown ? 256 : 0));
            assertEquals(buffer.spans, ends(buffer.bytes()).size());
        }
    }

    /** Numbers of two tables refer to different keys. */
    @Test
    void filter_mergesBuffersOfOneTableOnly() {
        Buffer one = filled(new ArrayList<>(), 5, 0);
        Buffer other = filled(new ArrayList<>(), 5, 0);
        for (Buffer buffer : List.of(one, other)) buffer.handOver(buffer.bytes().remaining());
        assertTrue(one.takes(other));
        other.table = new KeyTable(16);
        assertFalse(one.takes(other));
    }

    private static Buffer filled(List<List<Long>> messages, int spans, long end) {
        Buffer buffer = new Buffer(0, ByteBuffer.allocateDirect(Buffer.BYTES));
        buffer.empty(null);
        for (int i = 0; i < spans; i++) {
            if (i % Buffer.MOST_SPANS == 0) messages.add(new ArrayList<>());
            messages.get(messages.size() - 1).add(end + i);
            buffer.numbered(EncodedKey.of(new Labels()).labels.numbered(i % 300), 5, end + i, 0, 1);
        }
        buffer.seal();
        return buffer;
    }

    /**
     * Removes the first message of a buffer, as if it had been handed over on an earlier
     * connection.
     */
    private static int drop(List<List<Long>> messages, Buffer piece) {
        int spans = piece.handOver(4 + piece.bytes().getInt(0));
        messages.remove(messages.size() - parts(piece));
        piece.discard();
        return spans;
    }

    private static int parts(Buffer piece) {
        return (piece.spans + piece.handed + Buffer.MOST_SPANS - 1) / Buffer.MOST_SPANS;
    }

    private static List<Long> ends(ByteBuffer bytes) {
        List<Long> ends = new ArrayList<>();
        while (bytes.hasRemaining()) {
            byte[] message = new byte[bytes.getInt()];
            bytes.get(message);
            List<?> parts = (List<?>) Msgpack.read(ByteBuffer.wrap(message));
            for (Object snapshot : (List<?>) parts.get(1)) ends.add((Long) ((List<?>) snapshot).get(2));
        }
        return ends;
    }
}
