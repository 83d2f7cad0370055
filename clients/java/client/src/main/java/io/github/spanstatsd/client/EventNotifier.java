package io.github.spanstatsd.client;

import java.util.concurrent.TimeUnit;

/** Notifies a listener, at most once per second for each kind of event. Only the sender uses it. */
final class EventNotifier {
    private static final long APART = TimeUnit.SECONDS.toNanos(1);

    private final Listener listener;
    private final long[] last = new long[Event.values().length];
    private final long[] kept = new long[Event.values().length];
    private final boolean[] wasHeard = new boolean[Event.values().length];

    EventNotifier(Listener listener) {
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
            // An exception of the listener is ignored.
        }
    }
}
