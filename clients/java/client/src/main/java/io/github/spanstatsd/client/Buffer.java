package io.github.spanstatsd.client;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;

/**
 * A block of memory outside of the heap that holds consecutive spans messages, each with at most
 * {@value #MOST_SPANS} snapshots, which every daemon accepts. The publisher that has claimed the
 * buffer's stripe fills it. After sealing it belongs to the sender.
 */
final class Buffer {
    static final int BYTES = 64 << 10;
    static final int MOST_SPANS = 256;
    /** Upper bound on the bytes of a snapshot and of a message header, without a full key. */
    static final int ROOM = 80;

    /**
     * Bytes of a frame's length, of the message's array and type, and of an array header whose
     * count is set at the end.
     */
    private static final int HEADER = 11;
    private static final int LENGTH = 4;
    private static final int COUNT_AT = 7;
    private static final short SPANS = (short) 0x9205;
    private static final double MOST_WEIGHT = 1L << 32;
    private static final VarHandle BELOW;

    static {
        try {
            BELOW = MethodHandles.lookup().findVarHandle(Buffer.class, "below", int.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    final int index;
    /** The table that defines the key numbers in this buffer. */
    KeyTable table;
    /** Number of snapshots that are not handed over. */
    int spans;
    /** Number of snapshots that are handed over. */
    int handed;

    private final ByteBuffer memory;
    private final ByteBuffer view; // same memory, with a position and a limit
    private int at;
    private int message;
    private int count;
    private int from; // bytes before this offset are obsolete
    private int head; // bytes before this offset are handed over
    private volatile int below;

    Buffer(int index, ByteBuffer memory) {
        this.index = index;
        this.memory = memory;
        view = memory.duplicate();
    }

    /** Index of the next lower buffer in a stack. */
    int below() {
        return (int) BELOW.getOpaque(this);
    }

    void setBelow(int buffer) {
        BELOW.setOpaque(this, buffer);
    }

    /** Resets the buffer for filling. */
    void empty(KeyTable table) {
        this.table = table;
        at = from = head = message = count = spans = handed = 0;
    }

    /** Returns the number of free bytes. */
    int left() {
        return BYTES - at;
    }

    /**
     * Appends a snapshot with a key number; the caller has checked the free space. The snapshot
     * becomes part of the buffer at the end of the method.
     */
    void numbered(Key key, long duration, long end, int flags, double weight) {
        int to = count == 0 || count == MOST_SPANS ? begin() : at;
        weight = valid(weight);
        memory.putInt(to, weight == 1 ? key.head : key.head | 1 << 24);
        finish(facts(to + key.headBytes, duration, end, flags, weight));
    }

    /**
     * Begins a snapshot with a full key, and returns the offset at which the caller has to write
     * the key.
     */
    int beginWhole(double weight) {
        int to = count == 0 || count == MOST_SPANS ? begin() : at;
        memory.putShort(to, (short) ((valid(weight) == 1 ? 0x9400 : 0x9500) | Pack.BIN8));
        return to + 3;
    }

    /** Ends the snapshot whose key is between the two offsets. */
    void endWhole(int from, int to, long duration, long end, int flags, double weight) {
        int bytes = to - from;
        if (bytes < 0x100) {
            memory.put(from - 1, (byte) bytes);
        } else {
            for (int i = to - 1; i >= from; i--) {
                memory.put(i + 1, memory.get(i));
            }
            to++;
            memory.put(from - 2, (byte) Pack.BIN16);
            memory.putShort(from - 1, (short) bytes);
        }
        finish(facts(to, duration, end, flags, valid(weight)));
    }

    ByteBuffer memory() {
        return memory;
    }

    private void finish(int to) {
        at = to;
        count++;
        spans++;
    }

    /** Encodes durations of 66 µs to 4.3 s, and current end times, in a fast path. */
    private int facts(int to, long duration, long end, int flags, double weight) {
        if (duration >= 1 << 16 && duration < 1L << 32) {
            memory.putLong(to, (long) Pack.UINT32 << 56 | duration << 24);
            to += 5;
        } else {
            to = Pack.unsigned(memory, to, Math.max(duration, 0));
        }
        if (end >= 1L << 32) {
            memory.put(to, (byte) Pack.UINT64);
            memory.putLong(to + 1, end);
            to += 9;
        } else {
            to = Pack.signed(memory, to, end);
        }
        memory.put(to, (byte) (flags & (SpanstatsClient.ERROR | SpanstatsClient.TOP_LEVEL)));
        return weight == 1 ? to + 1 : Pack.number(memory, to + 1, weight);
    }

    /** Returns the nearest weight that the daemon accepts. */
    private static double valid(double weight) {
        return weight > 0 ? Math.min(weight, MOST_WEIGHT) : 1;
    }

    /** Begins a message if needed, and returns the offset of the next snapshot. */
    private int begin() {
        endMessage();
        message = at;
        count = 0;
        memory.putShort(at + LENGTH, SPANS);
        memory.put(at + LENGTH + 2, (byte) Pack.ARRAY32);
        return at + HEADER;
    }

    private void endMessage() {
        if (count > 0) {
            memory.putInt(message, at - message - LENGTH);
            memory.putInt(message + COUNT_AT, count);
        }
    }

    /** Prepares the buffer for sending. */
    void seal() {
        endMessage();
    }

    /** Returns the unsent bytes of a sealed buffer. The result is valid until the next call. */
    ByteBuffer bytes() {
        return view(head, at);
    }

    private ByteBuffer view(int from, int to) {
        view.limit(to).position(from);
        return view;
    }

    /**
     * Records that the socket accepted a number of these bytes, and returns the number of snapshots
     * in messages that it accepted completely. Later messages stay in the buffer, for the next
     * connection.
     */
    int handOver(int bytes) {
        int taken = head + bytes;
        int more = 0;
        while (head < at && end(head) <= taken) {
            more += memory.getInt(head + COUNT_AT);
            head = end(head);
        }
        spans -= more;
        handed += more;
        return more;
    }

    /** Returns the end of the message that begins at an offset. */
    private int end(int message) {
        return message + LENGTH + memory.getInt(message);
    }

    /** Marks handed-over messages as obsolete. */
    void discard() {
        from = head;
        handed = 0;
    }

    /**
     * Reports whether the content of another buffer fits after the content of this one. Both are
     * completely handed over.
     */
    boolean takes(Buffer other) {
        return table == other.table && left() >= other.head - other.from;
    }

    /** Appends the content of another buffer. */
    void append(Buffer other) {
        view(at, BYTES).put(other.view(other.from, other.head));
        at = head = view.position();
        handed += other.handed;
    }

    /**
     * Keeps the messages that have to be replayed and those that were not handed over; all of them
     * are then unsent. The buffer's first snapshot is at the given position among those of the
     * connection.
     */
    void retainUndelivered(long place, Outcomes outcomes) {
        int to = 0;
        for (int next = from; next < at;) {
            int begin = next;
            int snapshots = memory.getInt(begin + COUNT_AT);
            next = end(begin);
            if (begin < head) {
                handed -= snapshots;
                place += snapshots;
                if (!outcomes.countReplayable(place - snapshots, place)) {
                    continue;
                }
                spans += snapshots;
            }
            for (int i = begin; i < next; i++) {
                memory.put(to++, memory.get(i));
            }
        }
        at = to;
        from = head = 0;
    }
}
