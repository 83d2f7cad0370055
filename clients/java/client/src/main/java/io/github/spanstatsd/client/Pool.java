package io.github.spanstatsd.client;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

/**
 * All buffers. Publishers take free ones and return sealed ones without locks, so that a suspended
 * publisher blocks no other.
 */
final class Pool {
    private final Buffer[] buffers;
    private final int waiting; // number of buffers for unsent spans
    private boolean isOutOfMemory; // the virtual machine has no more memory
    private int spare; // number of additional buffers allocated so far for kept spans
    private final AtomicLong free = new AtomicLong();
    private final AtomicLong sealed = new AtomicLong();

    /** Allocates the memory for unsent spans. Memory for kept spans is allocated when needed. */
    Pool(int waitingBytes, int keptBytes) {
        waiting = waitingBytes / Buffer.BYTES;
        buffers = new Buffer[waiting + keptBytes / Buffer.BYTES];
        ByteBuffer memory = ByteBuffer.allocateDirect(waiting * Buffer.BYTES);
        for (int i = waiting - 1; i >= 0; i--) {
            memory.limit((i + 1) * Buffer.BYTES).position(i * Buffer.BYTES);
            buffers[i] = new Buffer(i, memory.slice());
            give(buffers[i]);
        }
    }

    /** Returns the minimum number of buffers for unsent spans. */
    int size() {
        return waiting;
    }

    /**
     * Ensures that a number of buffers can be kept in addition to those for unsent spans, and
     * reports whether they can. Only the sender calls it.
     */
    boolean ensureSpare(int kept) {
        if (kept > spare && waiting + spare < buffers.length && !isOutOfMemory) {
            try {
                Buffer more = new Buffer(waiting + spare, ByteBuffer.allocateDirect(Buffer.BYTES));
                buffers[more.index] = more;
                spare++;
                give(more);
            } catch (OutOfMemoryError e) {
                isOutOfMemory = true; // the existing buffers have to suffice
            }
        }
        return kept <= spare;
    }

    /**
     * Returns an empty buffer, or null. The one that was used last comes first, because it is in
     * the processor's cache.
     */
    Buffer take(KeyTable table) {
        Buffer buffer = pop(free);
        if (buffer != null) {
            buffer.empty(table);
        }
        return buffer;
    }

    void give(Buffer buffer) {
        push(free, buffer);
    }

    /** Passes a buffer to the sender. */
    void seal(Buffer buffer) {
        buffer.seal();
        push(sealed, buffer);
    }

    boolean hasSealed() {
        return (int) sealed.get() != 0;
    }

    /** Adds all sealed buffers to a list, the oldest first. */
    void takeSealed(List<Buffer> to) {
        int first = to.size();
        for (Buffer buffer = pop(sealed); buffer != null; buffer = pop(sealed)) {
            to.add(first, buffer);
        }
    }

    // The low half of a stack's head is the index of a buffer plus one. The high half counts
    // changes, so that compare-and-set detects a head that was popped and pushed again in the
    // meantime (ABA).

    private void push(AtomicLong stack, Buffer buffer) {
        long head;
        do {
            head = stack.get();
            buffer.setBelow((int) head);
        } while (!stack.compareAndSet(head, changed(head, buffer.index + 1)));
    }

    private Buffer pop(AtomicLong stack) {
        while (true) {
            long head = stack.get();
            if ((int) head == 0) {
                return null;
            }
            Buffer buffer = buffers[(int) head - 1];
            if (stack.compareAndSet(head, changed(head, buffer.below()))) {
                return buffer;
            }
        }
    }

    static long changed(long head, int top) {
        return (head >>> 32) + 1 << 32 | top;
    }
}
