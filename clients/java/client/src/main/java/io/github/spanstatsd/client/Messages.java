package io.github.spanstatsd.client;

import java.nio.ByteBuffer;
import java.util.Map;

/** Writes what a client says besides spans, each as a whole frame at the beginning of a buffer that has room for it. */
final class Messages {
    /** Room for any of them. */
    static final int BYTES = 64 << 10;

    private static final int LENGTH = 4;
    private static final int VALUE = 200;
    private static final int PROCESS_TAGS = 4096;
    private static final int COUNT_AT = 7;
    /** More than a definition has besides its key. */
    private static final int DEFINITION = 16;

    private Messages() {}

    /** Says hello; earlier is empty where there is nothing to ask. */
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

    /** Reports counts that are not 0, under names that are in order. */
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
     * Defines the keys of a table from one number on, as many as have room and at least one. The frame's count says
     * {@linkplain #definitions how many}.
     */
    static ByteBuffer define(ByteBuffer b, KeyTable table, int from, int count) {
        int at = Pack.octet(b, begin(b, 4), Pack.ARRAY32) + 4;
        int number = from;
        while (number < count && b.capacity() - at > DEFINITION + table.key(number).bound()) {
            at = Pack.unsigned(b, Pack.array(b, at, 2), number);
            int key = at + 2;
            int bytes = table.key(number).put(b, key) - key;
            if (bytes >= 0x100) { // one byte more for its length, so once more
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

    /** How many definitions that frame has. */
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
