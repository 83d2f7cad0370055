package io.github.spanstatsd.client;

import java.util.concurrent.atomic.AtomicLong;

/** Whether a client is closing, and when it has to be closed. */
final class Deadline {
    /** Far enough in the future to never be reached, without overflow in additions. */
    static final long NEVER = Long.MAX_VALUE / 4;

    private final AtomicLong at = new AtomicLong(System.nanoTime() + NEVER); // in terms of System.nanoTime
    private volatile boolean isSet;

    /** Starts closing, with a time limit. After several calls, the earliest limit applies. */
    void set(long nanos) {
        long end = System.nanoTime() + Math.min(nanos, NEVER);
        at.accumulateAndGet(end, (a, b) -> a - b < 0 ? a : b);
        isSet = true;
    }

    boolean isSet() {
        return isSet;
    }

    /** Returns the time left. */
    long left() {
        return at.get() - System.nanoTime();
    }
}
