package io.github.spanstatsd.client;

import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;

/**
 * Numbers of spans that are not counted, by reason, and the part that was reported to the daemon.
 */
final class Reports {
    private static final String DAEMON_DIED = "daemon_died";
    private static final String AMBIGUOUS = "ambiguous";
    /** The reasons in alphabetical order, as in a message. */
    private static final String[] NAMES = {AMBIGUOUS, "buffer_full", "closed", DAEMON_DIED, "disconnected", "not_wanted", "too_large"};

    private final Losses lost = new Losses(); // accepted spans that were lost
    // Spans handed over to daemons that crashed:
    private final AtomicLong unconfirmed = new AtomicLong(); // lost, or possibly lost
    private final AtomicLong ambiguous = new AtomicLong(); // possibly received by a destination
    private final Consumer<long[]> addRefused;
    private final long[] markSent = new long[NAMES.length];
    private long[] telling;

    Reports(Consumer<long[]> addRefused) {
        this.addRefused = addRefused;
    }

    void lose(Reason reason, int spans) {
        lost.add(reason.ordinal(), spans);
    }

    void unconfirmed(long spans) {
        unconfirmed.addAndGet(spans);
    }

    void ambiguous(long spans) {
        ambiguous.addAndGet(spans);
    }

    void addTo(Stats stats) {
        lost.addTo(stats.lost);
        stats.unconfirmed = unconfirmed.get();
        stats.ambiguous = ambiguous.get();
    }

    /** Returns a message with the losses since the last successful report, or null. */
    ByteBuffer next(ByteBuffer scratch) {
        telling = totals();
        long[] news = new long[NAMES.length];
        boolean isAny = false;
        for (int i = 0; i < news.length; i++) {
            news[i] = telling[i] - markSent[i];
            isAny |= news[i] > 0;
        }
        return isAny ? Messages.lost(scratch, NAMES, news) : null;
    }

    /** Records that the report was sent. */
    void markSent() {
        System.arraycopy(telling, 0, markSent, 0, markSent.length);
    }

    private long[] totals() {
        long[] counts = new long[Losses.REASONS];
        lost.addTo(counts);
        addRefused.accept(counts);
        long[] totals = new long[NAMES.length];
        for (int i = 0; i < NAMES.length; i++) {
            totals[i] = NAMES[i].equals(DAEMON_DIED) ? unconfirmed.get() : NAMES[i].equals(AMBIGUOUS) ? ambiguous.get() : 0;
            for (Reason reason : Reason.values()) {
                if (reason.label().equals(NAMES[i])) {
                    totals[i] = counts[reason.ordinal()];
                }
            }
        }
        return totals;
    }
}
