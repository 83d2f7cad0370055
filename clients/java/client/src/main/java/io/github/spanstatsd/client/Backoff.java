package io.github.spanstatsd.client;

import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;

/**
 * The pauses between attempts to connect: a random part of a duration that doubles each time, so
 * that the tracers of a pod do not all reconnect at the same time when their daemon is back.
 */
final class Backoff {
    private static final long LEAST = TimeUnit.MILLISECONDS.toNanos(50);
    private static final int MOST_DOUBLINGS = 24;

    private final long most;
    private int failures;

    Backoff(long most) {
        this.most = most;
    }

    /** Returns the pause after one more failure. */
    long next() {
        long limit = limit();
        failures++;
        return ThreadLocalRandom.current().nextLong(limit) + 1;
    }

    long limit() {
        return Math.min(LEAST << Math.min(failures, MOST_DOUBLINGS), most);
    }

    /**
     * Starts again with the shortest pause, after a connection that lasted longer than the longest
     * pause. A daemon that closes each connection soon after accepting it is not a success.
     */
    void reset(long lasted) {
        if (lasted > most) {
            failures = 0;
        }
    }
}
