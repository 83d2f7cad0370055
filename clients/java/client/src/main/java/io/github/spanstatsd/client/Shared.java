package io.github.spanstatsd.client;

import java.util.concurrent.atomic.AtomicBoolean;

/** The few words that publishers and the sender leave for one another. */
final class Shared {
    final Gate gate;
    volatile Features features = Features.UNTOLD;

    /** The sender knows that a stripe holds something, or that there is a loss to report. */
    private final AtomicBoolean armed = new AtomicBoolean();
    /** Word was left that the sender has not read yet. */
    private final AtomicBoolean woken = new AtomicBoolean();
    private volatile Runnable wakeUp = () -> {};

    Shared(Gate gate) {
        this.gate = gate;
    }

    /** Tells the sender that there is something, unless it knows. */
    void arm() {
        if (!armed.get() && armed.compareAndSet(false, true)) {
            wake();
        }
    }

    boolean isArmed() {
        return armed.get();
    }

    void disarm() {
        armed.set(false);
    }

    /** Has the sender look, which may wake a thread. Word that is there already will do. */
    void wake() {
        if (!woken.get() && woken.compareAndSet(false, true)) {
            wakeUp.run();
        }
    }

    /** The sender is about to look, so what comes from here on needs another word. */
    void looks() {
        woken.set(false);
    }

    void wakeBy(Runnable wakeUp) {
        this.wakeUp = wakeUp;
    }
}
