package io.github.spanstatsd.client;

import java.util.concurrent.atomic.AtomicLong;

/** Whether a client is closing, and when it gives up. */
final class Deadline {
    /** What is far enough away to be never, and near enough to be added to. */
    static final long NEVER = Long.MAX_VALUE / 4;

    private final AtomicLong at = new AtomicLong(System.nanoTime() + NEVER); // System.nanoTime
    private volatile boolean isSet;

    /** The client is closing, in so much time at most. It may be told again, and the earliest end stands. */
    void set(long nanos) {
        long end = System.nanoTime() + Math.min(nanos, NEVER);
        at.accumulateAndGet(end, (a, b) -> a - b < 0 ? a : b);
        isSet = true;
    }

    boolean isSet() {
        return isSet;
    }

    /** How long may still be waited for something. */
    long left() {
        return at.get() - System.nanoTime();
    }
}
