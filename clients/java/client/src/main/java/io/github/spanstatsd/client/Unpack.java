package io.github.spanstatsd.client;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * Parses the daemon's messages. It accepts every msgpack form of a value, and nil as the empty
 * value. It throws an {@link IOException} for any input that violates the protocol.
 */
final class Unpack {
    /** Limit on the nesting of maps and arrays in a body. */
    private static final int DEPTH = 8;
    private static final int LIST = 1024;
    private static final int LIST_BYTES = 64 << 10;

    private final byte[] bytes;
    private final int end;
    private int at;

    Unpack(byte[] bytes, int from, int end) {
        this.bytes = bytes;
        this.at = from;
        this.end = end;
    }

    /** Reads the value of one entry of a map. */
    interface Entry {
        void read(String name) throws IOException;
    }

    static IOException malformed(String what) {
        return new IOException("malformed message of the daemon: " + what);
    }

    /** Reads the header of a message and returns its type. */
    int type() throws IOException {
        if (count(0x90, 0xdc, "an array of two") != 2) {
            throw malformed("expected an array of two");
        }
        long type = unsigned();
        if (type < 1 || type > 8) {
            throw malformed("unknown type " + type);
        }
        if (at == end) {
            throw malformed("no body");
        }
        return (int) type;
    }

    /** Reads the body, which is a map and the rest of the message. */
    void body(Entry entry) throws IOException {
        int body = at;
        skip(DEPTH);
        if (at != end) {
            throw malformed("bytes follow the body");
        }
        at = body;
        if ((bytes[at] & 0xff) == Pack.NIL) { // only the value of a field can be nil
            throw malformed("expected a map");
        }
        map(entry);
    }

    void map(Entry entry) throws IOException {
        for (int left = isNil() ? 0 : count(0x80, 0xde, "a map"); left > 0; left--) {
            entry.read(string());
        }
    }

    String text() throws IOException {
        return isNil() ? "" : string();
    }

    boolean bool() throws IOException {
        if (isNil()) {
            return false;
        }
        int lead = next();
        if (lead != Pack.TRUE && lead != Pack.FALSE) {
            throw malformed("expected a boolean");
        }
        return lead == Pack.TRUE;
    }

    long number(long most) throws IOException {
        if (isNil()) {
            return 0;
        }
        long number = unsigned();
        if (Long.compareUnsigned(number, most) > 0) {
            throw malformed("a number above " + Long.toUnsignedString(most));
        }
        return number;
    }

    List<String> texts() throws IOException {
        List<String> list = new ArrayList<>();
        int size = 0;
        for (int left = listCount(); left > 0; left--) {
            int before = at;
            list.add(text());
            size += at - before;
            if (size > LIST_BYTES + 5 * LIST) {
                throw malformed("a list of too many bytes");
            }
        }
        return list;
    }

    List<Long> numbers() throws IOException {
        List<Long> list = new ArrayList<>();
        for (int left = listCount(); left > 0; left--) {
            list.add(number(-1));
        }
        return list;
    }

    private int listCount() throws IOException {
        int count = isNil() ? 0 : count(0x90, 0xdc, "an array");
        if (count > LIST) {
            throw malformed("a list of too many elements");
        }
        return count;
    }

    private boolean isNil() {
        if (at < end && (bytes[at] & 0xff) == Pack.NIL) {
            at++;
            return true;
        }
        return false;
    }

    private String string() throws IOException {
        int lead = next();
        long length;
        if (lead >> 5 == 5) {
            length = lead & 31;
        } else if (lead >= 0xd9 && lead <= 0xdb) {
            length = wide(1 << lead - 0xd9);
        } else {
            throw malformed("expected a string");
        }
        int from = take(length);
        return new String(bytes, from, at - from, StandardCharsets.UTF_8);
    }

    /** Reads a nonnegative integer of any form. */
    private long unsigned() throws IOException {
        int lead = next();
        if (lead < 0x80) {
            return lead;
        }
        if (lead >= 0xcc && lead <= Pack.UINT64) {
            return wide(1 << lead - 0xcc);
        }
        if (lead >= 0xd0 && lead <= 0xd3) {
            int size = 1 << lead - 0xd0;
            long value = wide(size);
            if (value >>> 8 * size - 1 == 0) {
                return value;
            }
        }
        throw malformed("expected an integer that is not negative");
    }

    /**
     * Reads the count of a map or an array. It must fit into the rest of the message, with at least
     * one byte per element.
     */
    private int count(int fix, int lead16, String what) throws IOException {
        int lead = next();
        long count;
        if (lead >> 4 == fix >> 4) {
            count = lead & 15;
        } else if (lead == lead16 || lead == lead16 + 1) {
            count = wide(lead == lead16 ? 2 : 4);
        } else {
            throw malformed("expected " + what);
        }
        if (count > end - at) {
            throw malformed("fewer bytes than elements");
        }
        return (int) count;
    }

    /** Skips one value of any form, with limited nesting. */
    void skip(int depth) throws IOException {
        int lead = next();
        if (lead >= 0x80 && lead < 0xa0 || lead >= 0xdc && lead <= 0xdf) {
            boolean isMap = lead < 0x90 || lead >= 0xde;
            at--;
            int count = isMap ? count(0x80, 0xde, "a map") : count(0x90, 0xdc, "an array");
            if (depth == 0) {
                throw malformed("nested too deep");
            }
            for (int left = isMap ? 2 * count : count; left > 0; left--) {
                skip(depth - 1);
            }
            return;
        }
        take(length(lead));
    }

    /** Returns the number of bytes after the lead byte of a value that is not a map or array. */
    private long length(int lead) throws IOException {
        if (lead < 0x80 || lead >= 0xe0 || lead == Pack.NIL || lead == Pack.FALSE || lead == Pack.TRUE) {
            return 0;
        }
        if (lead >> 5 == 5) {
            return lead & 31;
        }
        switch (lead) {
            case 0xc4: case 0xc5: case 0xc6:
                return wide(1 << lead - 0xc4);
            case 0xc7: case 0xc8: case 0xc9:
                return 1 + wide(1 << lead - 0xc7);
            case 0xca: case 0xcb:
                return 4L << lead - 0xca;
            case 0xcc: case 0xcd: case 0xce: case 0xcf:
                return 1L << lead - 0xcc;
            case 0xd0: case 0xd1: case 0xd2: case 0xd3:
                return 1L << lead - 0xd0;
            case 0xd4: case 0xd5: case 0xd6: case 0xd7: case 0xd8:
                return 1 + (1L << lead - 0xd4);
            case 0xd9: case 0xda: case 0xdb:
                return wide(1 << lead - 0xd9);
            default:
                throw malformed("invalid byte");
        }
    }

    private int next() throws IOException {
        return bytes[take(1)] & 0xff;
    }

    private long wide(int size) throws IOException {
        int from = take(size);
        long value = 0;
        for (int i = 0; i < size; i++) {
            value = value << 8 | bytes[from + i] & 0xff;
        }
        return value;
    }

    private int take(long length) throws IOException {
        if (length > end - at || length < 0) {
            throw malformed("unexpected end");
        }
        int from = at;
        at += (int) length;
        return from;
    }
}
