package io.github.spanstatsd.client;

import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;

/** What is not counted, by reason, and how much of it the daemon was told. */
final class Reports {
    private static final String DAEMON_DIED = "daemon_died";
    private static final String AMBIGUOUS = "ambiguous";
    /** The reasons in the order of their names, in which a message has them. */
    private static final String[] NAMES = {AMBIGUOUS, "buffer_full", "closed", DAEMON_DIED, "disconnected", "not_wanted", "too_large"};

    private final Losses lost = new Losses(); // after they were accepted
    // Of what was handed over to daemons that died:
    private final AtomicLong unconfirmed = new AtomicLong(); // what is lost, or may be
    private final AtomicLong ambiguous = new AtomicLong(); // what a destination may have
    private final Consumer<long[]> addRefused;
    private final long[] told = new long[NAMES.length];
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

    /** What was lost since the last report that the daemon got, or null. */
    ByteBuffer next(ByteBuffer scratch) {
        telling = totals();
        long[] news = new long[NAMES.length];
        boolean isAny = false;
        for (int i = 0; i < news.length; i++) {
            news[i] = telling[i] - told[i];
            isAny |= news[i] > 0;
        }
        return isAny ? Messages.lost(scratch, NAMES, news) : null;
    }

    /** The daemon got it. */
    void told() {
        System.arraycopy(telling, 0, told, 0, told.length);
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
