package io.github.spanstatsd.client;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

class KeyWriterTest {
    private static final String[] PIECES = {"a", "é", "€", "😀", "\ud800", "\udc00", "z"};

    private static String text(Random r, int bytes) {
        StringBuilder s = new StringBuilder();
        for (int i = 0; i < bytes; i += 2) s.append(PIECES[r.nextInt(PIECES.length)]);
        return s.toString();
    }

    /** Labels of any shape are encoded to the same bytes as by a simple encoder. */
    @Test
    void encode_equalsSimpleEncoder() {
        Random r = new Random(1);
        for (int i = 0; i < 3000; i++) {
            Samples.Span s = Samples.random(r);
            assertArrayEquals(s.key(), EncodedKey.of(s.inLabels()).bytes, () -> s.labels.toString());
        }
    }

    /**
     * Strings are encoded as by Java, apart from unpaired surrogates. A truncated string is the
     * longest prefix of complete characters.
     */
    @Test
    void truncate_keepsCompleteCharacters() {
        Random r = new Random(2);
        for (int i = 0; i < 2000; i++) {
            String text = text(r, r.nextInt(40));
            StringBuilder mended = new StringBuilder();
            text.codePoints().forEach(c -> mended.appendCodePoint(Character.getType(c) == Character.SURROGATE ? 0xfffd : c));
            int most = r.nextInt(45);
            byte[] want = {};
            for (int end = 0; end <= mended.length(); end = mended.offsetByCodePoints(Math.min(end, mended.length() - 1), 1)) {
                byte[] head = mended.substring(0, end).getBytes(StandardCharsets.UTF_8);
                if (head.length <= most) want = head;
                if (end == mended.length()) break;
            }
            int bytes = Utf8.length(text, most);
            ByteBuffer b = ByteBuffer.allocate(most);
            assertEquals(bytes, Utf8.put(b, 0, text, bytes));
            assertArrayEquals(want, java.util.Arrays.copyOf(b.array(), bytes), text);
        }
    }

    /**
     * A truncated label is a few bytes longer than the daemon's limit, so that the daemon notices
     * the truncation.
     */
    @Test
    @SuppressWarnings("unchecked")
    void truncate_exceedsDaemonsLimit() {
        String huge = "x".repeat(1 << 20);
        Labels l = new Labels().service(huge).operation(huge).resource(huge).type(huge).kind(huge).traceRoot(TraceRoot.TRUE)
                .httpStatus(Integer.MAX_VALUE).httpMethod(huge).httpEndpoint(huge).grpcStatus(huge).serviceSource(huge).synthetics(true);
        for (int i = 0; i < 100; i++) {
            l.peerTag(huge).additionalTag(huge, huge);
            l.peerTag("k", huge);
        }
        byte[] bytes = EncodedKey.of(l).bytes;
        assertTrue(Buffer.ROOM + bytes.length <= Buffer.BYTES / 2, bytes.length + " bytes");
        List<Object> key = (List<Object>) Msgpack.read(ByteBuffer.wrap(bytes));
        int[] limits = {100, 100, 5000, 100, 200, 0, 0, 0, 200, 200, 200, 200};
        for (int i = 0; i < limits.length; i++) {
            if (limits[i] > 0) assertEquals(limits[i] + 4, ((String) key.get(i)).length());
        }
        List<String> peers = (List<String>) key.get(7);
        List<String> additional = (List<String>) key.get(13);
        assertEquals(64, peers.size());
        assertEquals(4, additional.size());
        for (String tag : peers) assertEquals(204, tag.length());
        for (String tag : additional) assertEquals(405, tag.length());
    }

    /**
     * The bound is used to check the free space before a key is written, so it must not be too low.
     */
    @Test
    void size_staysWithinBound() {
        Random r = new Random(3);
        for (int i = 0; i < 500; i++) {
            Labels l = new Labels().service(text(r, r.nextInt(120))).operation(text(r, r.nextInt(120))).resource(text(r, r.nextInt(300)))
                    .type(text(r, r.nextInt(120))).kind(text(r, r.nextInt(260))).grpcStatus(text(r, r.nextInt(260)));
            for (int n = r.nextInt(70); n > 0; n--) l.peerTag("k:" + text(r, r.nextInt(260))).additionalTag(text(r, r.nextInt(300)), text(r, 260));
            EncodedKey key = EncodedKey.of(l);
            assertTrue(key.bytes.length <= key.labels.bound());
        }
    }
}
