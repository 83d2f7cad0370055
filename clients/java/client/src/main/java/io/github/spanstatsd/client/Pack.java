package io.github.spanstatsd.client;

import java.nio.ByteBuffer;

/**
 * Writes msgpack, always in its shortest form, so that equal values have equal bytes. Each method
 * writes at an offset, where the caller has checked the free space, and returns the offset after
 * the written bytes.
 */
final class Pack {
    static final int NIL = 0xc0;
    static final int FALSE = 0xc2;
    static final int TRUE = 0xc3;
    static final int BIN8 = 0xc4;
    static final int BIN16 = 0xc5;
    static final int UINT32 = 0xce;
    static final int UINT64 = 0xcf;
    static final int ARRAY32 = 0xdd;
    static final int FIX_ARRAY = 0x90;
    private static final int FIX_MAP = 0x80;
    private static final int FIX_STR = 0xa0;
    private static final int FLOAT64 = 0xcb;
    private static final int STR8 = 0xd9;

    private Pack() {}

    static int octet(ByteBuffer b, int at, int value) {
        b.put(at, (byte) value);
        return at + 1;
    }

    /** Writes an unsigned integer. */
    static int unsigned(ByteBuffer b, int at, long value) {
        if (value >>> 7 == 0) {
            return octet(b, at, (int) value);
        }
        if (value >>> 8 == 0) {
            return octet(b, octet(b, at, 0xcc), (int) value);
        }
        if (value >>> 16 == 0) {
            b.putShort(octet(b, at, 0xcd), (short) value);
            return at + 3;
        }
        if (value >>> 32 == 0) {
            b.putInt(octet(b, at, UINT32), (int) value);
            return at + 5;
        }
        b.putLong(octet(b, at, UINT64), value);
        return at + 9;
    }

    static int signed(ByteBuffer b, int at, long value) {
        if (value >= 0) {
            return unsigned(b, at, value);
        }
        if (value >= -32) {
            return octet(b, at, (int) value);
        }
        if (value >= Byte.MIN_VALUE) {
            return octet(b, octet(b, at, 0xd0), (int) value);
        }
        if (value >= Short.MIN_VALUE) {
            b.putShort(octet(b, at, 0xd1), (short) value);
            return at + 3;
        }
        if (value >= Integer.MIN_VALUE) {
            b.putInt(octet(b, at, 0xd2), (int) value);
            return at + 5;
        }
        b.putLong(octet(b, at, 0xd3), value);
        return at + 9;
    }

    /** Writes a whole number as an integer, and any other as a float. */
    static int number(ByteBuffer b, int at, double value) {
        long whole = (long) value;
        if (whole == value && whole >= 0 && whole < 1L << 32) {
            return unsigned(b, at, whole);
        }
        b.putDouble(octet(b, at, FLOAT64), value);
        return at + 9;
    }

    static int bool(ByteBuffer b, int at, boolean value) {
        return octet(b, at, value ? TRUE : FALSE);
    }

    /** Writes the header of a map of fewer than 16 entries. */
    static int map(ByteBuffer b, int at, int entries) {
        return octet(b, at, FIX_MAP | entries);
    }

    /** Writes the header of an array of fewer than 65536 elements. */
    static int array(ByteBuffer b, int at, int elements) {
        if (elements < 16) {
            return octet(b, at, FIX_ARRAY | elements);
        }
        b.putShort(octet(b, at, 0xdc), (short) elements);
        return at + 3;
    }

    /** Writes the header of a string of fewer than 65536 bytes. */
    static int textHeader(ByteBuffer b, int at, int bytes) {
        if (bytes < 32) {
            return octet(b, at, FIX_STR | bytes);
        }
        if (bytes < 256) {
            return octet(b, octet(b, at, STR8), bytes);
        }
        b.putShort(octet(b, at, STR8 + 1), (short) bytes);
        return at + 3;
    }

    /** Writes a string, truncated to a number of bytes at the boundary of a character. */
    static int text(ByteBuffer b, int at, String text, int most) {
        int bytes = Utf8.length(text, most);
        return Utf8.put(b, textHeader(b, at, bytes), text, bytes);
    }
}
