package io.github.spanstatsd.client;

import java.util.concurrent.TimeUnit;

/** Tells a listener, of one kind of event at most one a second. It is the sender's. */
final class Herald {
    private static final long APART = TimeUnit.SECONDS.toNanos(1);

    private final Listener listener;
    private final long[] last = new long[Event.values().length];
    private final long[] kept = new long[Event.values().length];
    private final boolean[] wasHeard = new boolean[Event.values().length];

    Herald(Listener listener) {
        this.listener = listener;
    }

    void tell(Event event, String message) {
        int i = event.ordinal();
        long now = System.nanoTime();
        if (wasHeard[i] && now - last[i] < APART) {
            kept[i]++;
            return;
        }
        String more = kept[i] == 0 ? "" : " (and " + kept[i] + " of its kind before)";
        last[i] = now;
        kept[i] = 0;
        wasHeard[i] = true;
        try {
            listener.heard(event, message + more);
        } catch (RuntimeException | LinkageError e) {
            // It is the listener's, and nobody is left to tell.
        }
    }
}
