package io.github.spanstatsd.client;

import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

/**
 * Determines how long a partially full buffer waits for more spans. At the rates of pods, a send
 * costs more than the data, because it wakes both processes, and the statistics are not exported
 * before the daemon's interval ends. So a buffer waits as long as allowed. But it is sent before
 * the interval ends, because otherwise the agent would receive the spans an interval later.
 */
final class Schedule {
    /** Shortest interval of a daemon. Shorter values are ignored. */
    private static final long LEAST = TimeUnit.SECONDS.toNanos(1);
    private static final long MOST = TimeUnit.HOURS.toNanos(1);
    /** Shortest lead: the time from the end of a timer until the daemon has counted the spans. */
    static final long LEAST_LEAD = TimeUnit.MILLISECONDS.toNanos(100);
    /**
     * Range of the random part of a lead, which prevents that all tracers of a pod send at the same
     * time.
     */
    static final long DRAWN_LEAD = TimeUnit.MILLISECONDS.toNanos(200);

    final long age;
    final long interval;
    final long lead;

    /**
     * Creates a schedule from the longest wait and the daemon's interval, both in nanoseconds. The
     * interval is 0 if the daemon did not report it.
     */
    Schedule(long age, long interval) {
        this.age = age;
        this.interval = interval >= LEAST && interval <= MOST ? interval : 0;
        lead = LEAST_LEAD + ThreadLocalRandom.current().nextLong(DRAWN_LEAD);
    }

    /**
     * Returns how long spans published now can wait. Intervals end at multiples of their length on
     * the wall clock, which is also the daemon's.
     */
    long delay(long epochNanos) {
        if (interval == 0) {
            return age;
        }
        long left = interval - epochNanos % interval - lead;
        if (left <= 0) {
            left += interval; // the last send of this interval is over already
        }
        return Math.min(age, left);
    }
}
