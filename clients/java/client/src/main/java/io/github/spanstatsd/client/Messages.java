package io.github.spanstatsd.client;

import java.nio.ByteBuffer;
import java.util.Map;

/**
 * Writes the client's messages other than spans. Each method writes a complete frame at the start
 * of a buffer that is large enough.
 */
final class Messages {
    /** Size of a buffer for any of them. */
    static final int BYTES = 64 << 10;

    private static final int LENGTH = 4;
    private static final int VALUE = 200;
    private static final int PROCESS_TAGS = 4096;
    private static final int COUNT_AT = 7;
    /** Upper bound on the bytes of a definition without its key. */
    private static final int DEFINITION = 16;

    private Messages() {}

    /** Writes a hello message. earlier is empty if there is nothing to ask. */
    static ByteBuffer hello(ByteBuffer b, String client, Origin origin, boolean settled, String earlier) {
        int at = Pack.map(b, begin(b, 1), 3 + (settled ? 1 : 0) + (earlier.isEmpty() ? 0 : 1));
        at = Pack.unsigned(b, name(b, at, "version"), 1);
        at = Pack.text(b, name(b, at, "client"), client, VALUE);
        Map<String, String> fields = origin.fields();
        at = Pack.map(b, name(b, at, "origin"), fields.size());
        for (Map.Entry<String, String> field : fields.entrySet()) {
            int most = field.getKey().equals("process_tags") ? PROCESS_TAGS : VALUE;
            at = Pack.text(b, name(b, at, field.getKey()), field.getValue(), most);
        }
        at = settled ? Pack.bool(b, name(b, at, "settled"), true) : at;
        return end(b, earlier.isEmpty() ? at : Pack.text(b, name(b, at, "earlier"), earlier, VALUE));
    }

    /** Writes a report of nonzero counts. The reasons are sorted. */
    static ByteBuffer lost(ByteBuffer b, String[] reasons, long[] counts) {
        int entries = 0;
        for (long count : counts) {
            entries += count > 0 ? 1 : 0;
        }
        int at = Pack.map(b, begin(b, 6), entries);
        for (int i = 0; i < reasons.length; i++) {
            if (counts[i] > 0) {
                at = Pack.unsigned(b, name(b, at, reasons[i]), counts[i]);
            }
        }
        return end(b, at);
    }

    static ByteBuffer flush(ByteBuffer b, long id) {
        int at = Pack.map(b, begin(b, 7), 1);
        return end(b, Pack.unsigned(b, name(b, at, "id"), id));
    }

    static ByteBuffer bye(ByteBuffer b, String reason) {
        int at = Pack.map(b, begin(b, 8), 1);
        return end(b, Pack.text(b, name(b, at, "reason"), reason, VALUE));
    }

    /**
     * Defines the keys of a table from a number on: at least one, and as many as fit. {@linkplain
     * #definitions} returns the number of definitions in the frame.
     */
    static ByteBuffer define(ByteBuffer b, KeyTable table, int from, int count) {
        int at = Pack.octet(b, begin(b, 4), Pack.ARRAY32) + 4;
        int number = from;
        while (number < count && b.capacity() - at > DEFINITION + table.key(number).bound()) {
            at = Pack.unsigned(b, Pack.array(b, at, 2), number);
            int key = at + 2;
            int bytes = table.key(number).put(b, key) - key;
            if (bytes >= 0x100) { // the length of the array needs one more byte, so start again
                key++;
                table.key(number).put(b, key);
                b.putShort(at + 1, (short) bytes);
                b.put(at, (byte) Pack.BIN16);
            } else {
                b.putShort(at, (short) (Pack.BIN8 << 8 | bytes));
            }
            at = key + bytes;
            number++;
        }
        b.putInt(COUNT_AT, number - from);
        return end(b, at);
    }

    /** Returns the number of definitions in that frame. */
    static int definitions(ByteBuffer frame) {
        return frame.getInt(COUNT_AT);
    }

    private static int name(ByteBuffer b, int at, String name) {
        return Pack.text(b, at, name, VALUE);
    }

    private static int begin(ByteBuffer b, int type) {
        b.clear();
        return Pack.octet(b, Pack.array(b, LENGTH, 2), type);
    }

    private static ByteBuffer end(ByteBuffer b, int at) {
        b.putInt(0, at - LENGTH);
        b.limit(at).position(0);
        return b;
    }
}
