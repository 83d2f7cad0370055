package io.github.spanstatsd.client;

import java.util.concurrent.atomic.AtomicBoolean;

/** Signals between publishers and the sender. */
final class Shared {
    final Gate gate;
    volatile Features features = Features.UNTOLD;

    /** The sender knows that a stripe holds spans, or that there is a loss to report. */
    private final AtomicBoolean armed = new AtomicBoolean();
    /** There is a wake-up that the sender has not seen yet. */
    private final AtomicBoolean woken = new AtomicBoolean();
    private volatile Runnable wakeUp = () -> {};

    Shared(Gate gate) {
        this.gate = gate;
    }

    /** Notifies the sender that there is something to do, unless it knows. */
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

    /** Wakes the sender, unless a wake-up is pending. */
    void wake() {
        if (!woken.get() && woken.compareAndSet(false, true)) {
            wakeUp.run();
        }
    }

    /** Called by the sender before it checks for work. Later work needs another wake-up. */
    void clearWakeup() {
        woken.set(false);
    }

    void wakeBy(Runnable wakeUp) {
        this.wakeUp = wakeUp;
    }
}
