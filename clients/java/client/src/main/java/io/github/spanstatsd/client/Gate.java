package io.github.spanstatsd.client;

import java.util.concurrent.atomic.AtomicInteger;

/**
 * Says whether spans are taken, and why not. It opens and shuts with what the daemon wants and with how
 * long it is away, until close shuts it for good.
 */
final class Gate {
    /** What {@link #why} is while it is open; else it is the place of a {@link Reason}. */
    static final int OPEN = -1;

    private static final int CLOSED = Reason.CLOSED.ordinal();

    private final AtomicInteger why = new AtomicInteger(OPEN);

    int why() {
        return why.get();
    }

    void open() {
        set(OPEN);
    }

    void shut(Reason reason) {
        set(reason.ordinal());
    }

    private void set(int to) {
        int from = why.get();
        while (from != CLOSED && !why.compareAndSet(from, to)) {
            from = why.get();
        }
    }
}
