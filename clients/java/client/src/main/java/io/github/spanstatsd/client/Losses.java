package io.github.spanstatsd.client;

import java.util.concurrent.atomic.AtomicLongArray;

/** Counts spans by reason. */
final class Losses {
    static final int REASONS = Reason.values().length;
    /** Distance between counters, so that they are in separate cache lines. */
    private static final int APART = 16;

    private final AtomicLongArray counts = new AtomicLongArray(APART + REASONS + APART);

    void add(int reason, long spans) {
        counts.getAndAdd(APART + reason, spans);
    }

    void addTo(long[] totals) {
        for (int i = 0; i < REASONS; i++) {
            totals[i] += counts.get(APART + i);
        }
    }
}
