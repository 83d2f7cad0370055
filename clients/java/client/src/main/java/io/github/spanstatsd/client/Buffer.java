package io.github.spanstatsd.client;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;

/**
 * A fixed piece of memory outside of the heap, which holds spans messages back to back, each of at most
 * {@value #MOST_SPANS} snapshots, which every daemon takes. Whoever has claimed the stripe that it is in
 * fills it, from its sealing on it is the sender's.
 */
final class Buffer {
    static final int BYTES = 64 << 10;
    static final int MOST_SPANS = 256;
    /** More than a snapshot and the header of a message have besides a whole key. */
    static final int ROOM = 80;

    /** A frame's length, the array of a message with its type, and an array of a count that is known at its end. */
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
    /** The table that its numbers are of. */
    KeyTable table;
    /** Its snapshots, less those that were handed over. */
    int spans;
    /** Its snapshots that were handed over. */
    int handed;

    private final ByteBuffer memory;
    private final ByteBuffer view; // of the same memory, with a position and a limit
    private int at;
    private int message;
    private int count;
    private int from; // what lies before it is of no use any more
    private int head; // what lies before it was handed over
    private volatile int below;

    Buffer(int index, ByteBuffer memory) {
        this.index = index;
        this.memory = memory;
        view = memory.duplicate();
    }

    /** The buffer under it in a stack, by its index. */
    int below() {
        return (int) BELOW.getOpaque(this);
    }

    void setBelow(int buffer) {
        BELOW.setOpaque(this, buffer);
    }

    /** Makes it ready to be filled. */
    void empty(KeyTable table) {
        this.table = table;
        at = from = head = message = count = spans = handed = 0;
    }

    /** How many bytes it still takes. */
    int left() {
        return BYTES - at;
    }

    /** Writes a snapshot by number; there is room for it. Nothing is there before all of it is. */
    void numbered(Key key, long duration, long end, int flags, double weight) {
        int to = count == 0 || count == MOST_SPANS ? begin() : at;
        weight = valid(weight);
        memory.putInt(to, weight == 1 ? key.head : key.head | 1 << 24);
        finish(facts(to + key.headBytes, duration, end, flags, weight));
    }

    /** Begins a snapshot with its key whole, which is to be written at the place that this returns. */
    int beginWhole(double weight) {
        int to = count == 0 || count == MOST_SPANS ? begin() : at;
        memory.putShort(to, (short) ((valid(weight) == 1 ? 0x9400 : 0x9500) | Pack.BIN8));
        return to + 3;
    }

    /** Ends that snapshot, whose key lies between the two places. */
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

    /** The common duration, of 66 µs to 4.3 s, and the common end have a way of their own. */
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

    /** The nearest weight that the daemon takes. */
    private static double valid(double weight) {
        return weight > 0 ? Math.min(weight, MOST_WEIGHT) : 1;
    }

    /** Begins a message and returns the place of its first snapshot. */
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

    /** Makes it what is to be sent. */
    void seal() {
        endMessage();
    }

    /** What is still to be sent of a sealed buffer. It is good until the next call. */
    ByteBuffer bytes() {
        return view(head, at);
    }

    private ByteBuffer view(int from, int to) {
        view.limit(to).position(from);
        return view;
    }

    /**
     * Notes that the socket took so many of those bytes, and returns how many snapshots lie in messages that it took
     * to their last. What follows those messages stays, to be sent on the next connection.
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

    /** Where the message that begins at a place ends. */
    private int end(int message) {
        return message + LENGTH + memory.getInt(message);
    }

    /** Forgets what was handed over. */
    void letGo() {
        from = head;
        handed = 0;
    }

    /** Whether what another holds has room behind what this one does; both were handed over whole. */
    boolean takes(Buffer other) {
        return table == other.table && left() >= other.head - other.from;
    }

    /** Copies it there. */
    void append(Buffer other) {
        view(at, BYTES).put(other.view(other.from, other.head));
        at = head = view.position();
        handed += other.handed;
    }

    /**
     * Keeps those messages that are to be handed over again, and what was not handed over, which is then all to be sent.
     * Its first snapshot has that place among those of the connection.
     */
    void sift(long place, Outcomes told) {
        int to = 0;
        for (int next = from; next < at;) {
            int begin = next;
            int snapshots = memory.getInt(begin + COUNT_AT);
            next = end(begin);
            if (begin < head) {
                handed -= snapshots;
                place += snapshots;
                if (!told.isAgain(place - snapshots, place)) {
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
