package io.github.spanstatsd.client;

import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

/**
 * Says how long a buffer that is not full waits for more. At the rates that pods have each send costs more than
 * what is sent, because it wakes both processes, and nobody reads the statistics before the daemon's interval
 * ends. So a buffer waits for as long as it may; but what can be with the daemon before an interval ends is there,
 * or the agent would hear of it an interval later.
 */
final class Schedule {
    /** What a daemon may say of its interval; a schedule goes by no other. */
    private static final long LEAST = TimeUnit.SECONDS.toNanos(1);
    private static final long MOST = TimeUnit.HOURS.toNanos(1);
    /** For what happens between a timer's end and the daemon's having counted. */
    static final long LEAST_LEAD = TimeUnit.MILLISECONDS.toNanos(100);
    /** The rest of a lead is drawn, so that not all tracers of a pod send at one moment. */
    static final long DRAWN_LEAD = TimeUnit.MILLISECONDS.toNanos(200);

    final long age;
    final long interval;
    final long lead;

    /** Goes by the longest wait, and by the daemon's interval, 0 where it said none, in nanoseconds. */
    Schedule(long age, long interval) {
        this.age = age;
        this.interval = interval >= LEAST && interval <= MOST ? interval : 0;
        lead = LEAST_LEAD + ThreadLocalRandom.current().nextLong(DRAWN_LEAD);
    }

    /**
     * How long what is published now waits, and with it all that comes before it is over. Intervals end at the
     * multiples of their length on the wall clock, which is the daemon's too.
     */
    long delay(long epochNanos) {
        if (interval == 0) {
            return age;
        }
        long left = interval - epochNanos % interval - lead;
        if (left <= 0) {
            left += interval; // the last of this one is on its way already
        }
        return Math.min(age, left);
    }
}
