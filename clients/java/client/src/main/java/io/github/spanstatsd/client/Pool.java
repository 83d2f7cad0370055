package io.github.spanstatsd.client;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

/**
 * All buffers there are. Publishers take free ones and leave sealed ones without any lock, so that one
 * who is stopped in between stops nobody.
 */
final class Pool {
    private final Buffer[] buffers;
    private final int waiting; // so many are for what waits
    private boolean isOut; // the virtual machine gives no more memory
    private int spare; // and so many more there are by now, for what is kept
    private final AtomicLong free = new AtomicLong();
    private final AtomicLong sealed = new AtomicLong();

    /** Takes the memory for what waits, and that for what is kept only when it is needed. */
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

    /** How many buffers there are for what waits, at least. */
    int size() {
        return waiting;
    }

    /**
     * Sees to it that so many buffers can be kept and leave those for what waits, and says whether they can. The sender
     * alone asks.
     */
    boolean spares(int kept) {
        if (kept > spare && waiting + spare < buffers.length && !isOut) {
            try {
                Buffer more = new Buffer(waiting + spare, ByteBuffer.allocateDirect(Buffer.BYTES));
                buffers[more.index] = more;
                spare++;
                give(more);
            } catch (OutOfMemoryError e) {
                isOut = true; // what is there has to do
            }
        }
        return kept <= spare;
    }

    /** An empty buffer, or null. The one that was used last comes first, because the processor has it at hand. */
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

    /** Hands a buffer to the sender. */
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

    // The head of a stack is a buffer's index and one in its low half, and in the high half a count of changes, so
    // that a head that was popped and pushed again is not taken for one that never moved.

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
