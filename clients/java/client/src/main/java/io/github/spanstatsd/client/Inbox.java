package io.github.spanstatsd.client;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.ReadableByteChannel;
import java.util.Arrays;

/**
 * Splits the received bytes into messages. Its memory grows as needed, up to the longest message
 * that a daemon sends.
 */
final class Inbox {
    private static final int LENGTH = 4;
    private static final int LONGEST = 1 << 20;
    private static final int CHUNK = 8 << 10;

    private final ByteBuffer chunk = ByteBuffer.allocateDirect(CHUNK);
    private byte[] bytes = {};
    private int from;
    private int to;

    /** Resets it for a new connection. */
    void clear() {
        from = to = 0;
    }

    /** Reads available bytes from the channel, and returns their number, negative at the end. */
    int read(ReadableByteChannel channel) throws IOException {
        chunk.clear();
        int read = channel.read(chunk);
        if (read > 0) {
            System.arraycopy(bytes, from, bytes, 0, to - from);
            to -= from;
            from = 0;
            if (to + read > bytes.length) {
                bytes = Arrays.copyOf(bytes, Math.max(2 * bytes.length, to + read));
            }
            chunk.flip();
            chunk.get(bytes, to, read);
            to += read;
        }
        return read;
    }

    /** Returns the next message, which is valid until the next read, or null. */
    Unpack next() throws IOException {
        if (to - from < LENGTH) {
            return null;
        }
        long length = ByteBuffer.wrap(bytes, from, LENGTH).getInt() & 0xffffffffL;
        if (length > LONGEST || length == 0) {
            throw Unpack.malformed(length + " bytes; the maximum is " + LONGEST);
        }
        if (to - from - LENGTH < length) {
            return null;
        }
        int start = from + LENGTH;
        from = start + (int) length;
        return new Unpack(bytes, start, from);
    }
}
