package io.github.spanstatsd.client;

import java.util.concurrent.atomic.AtomicInteger;

/**
 * Whether spans are accepted, and otherwise the reason. It depends on the features, and on how long
 * the daemon has been unreachable. Close shuts it permanently.
 */
final class Gate {
    /** Value of {@link #why} while the gate is open; otherwise the ordinal of a {@link Reason}. */
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
