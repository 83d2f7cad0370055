package io.github.spanstatsd.client;

import java.nio.ByteBuffer;

/** Writes strings as UTF-8 without an intermediate array. An unpaired surrogate becomes U+FFFD. */
final class Utf8 {
    private Utf8() {}

    /**
     * Returns the number of bytes of the longest prefix of the text that has at most the given
     * number of bytes and ends at a character boundary.
     */
    static int length(String text, int most) {
        int chars = text.length();
        int bytes = 0;
        for (int i = 0; i < chars; i++) {
            char c = text.charAt(i);
            int size = 1;
            if (c >= 0x80) {
                size = c < 0x800 ? 2 : isPair(text, i) ? 4 : 3;
            }
            if (bytes + size > most) {
                return bytes;
            }
            bytes += size;
            if (size == 4) {
                i++;
            }
        }
        return bytes;
    }

    /** Writes the prefix of the text that has the given number of bytes. */
    static int put(ByteBuffer b, int at, String text, int bytes) {
        int end = at + bytes;
        for (int i = 0; at < end; i++) {
            char c = text.charAt(i);
            if (c < 0x80) {
                b.put(at++, (byte) c);
            } else if (c < 0x800) {
                at = two(b, at, 0xc0 | c >> 6, c);
            } else if (isPair(text, i)) {
                at = four(b, at, Character.toCodePoint(c, text.charAt(++i)));
            } else {
                at = three(b, at, Character.isSurrogate(c) ? 0xfffd : c);
            }
        }
        return at;
    }

    private static boolean isPair(String text, int i) {
        return Character.isHighSurrogate(text.charAt(i)) && i + 1 < text.length() && Character.isLowSurrogate(text.charAt(i + 1));
    }

    private static int two(ByteBuffer b, int at, int lead, int c) {
        b.put(at, (byte) lead);
        b.put(at + 1, (byte) (0x80 | c & 0x3f));
        return at + 2;
    }

    private static int three(ByteBuffer b, int at, int c) {
        b.put(at, (byte) (0xe0 | c >> 12));
        return two(b, at + 1, 0x80 | c >> 6 & 0x3f, c);
    }

    private static int four(ByteBuffer b, int at, int c) {
        b.put(at, (byte) (0xf0 | c >> 18));
        b.put(at + 1, (byte) (0x80 | c >> 12 & 0x3f));
        return two(b, at + 2, 0x80 | c >> 6 & 0x3f, c);
    }
}
