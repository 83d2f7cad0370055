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
    private final AtomicLong free = new AtomicLong();
    private final AtomicLong sealed = new AtomicLong();

    Pool(int bytes) {
        buffers = new Buffer[bytes / Buffer.BYTES];
        ByteBuffer memory = ByteBuffer.allocateDirect(buffers.length * Buffer.BYTES);
        for (int i = buffers.length - 1; i >= 0; i--) {
            memory.limit((i + 1) * Buffer.BYTES).position(i * Buffer.BYTES);
            buffers[i] = new Buffer(i, memory.slice());
            give(buffers[i]);
        }
    }

    int size() {
        return buffers.length;
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
