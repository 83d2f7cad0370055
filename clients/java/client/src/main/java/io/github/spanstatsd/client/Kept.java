package io.github.spanstatsd.client;

import java.util.ArrayDeque;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Spans that were handed over on a connection and are not settled, the oldest first. If the daemon
 * crashes, the client asks the next one about their outcome, and which of them to replay. Messages
 * of a partially full buffer are copied to the end of the previous buffer, so that each buffer of
 * the pool is as full as possible. Only the sender uses it.
 */
final class Kept {
    private final Pool pool;
    private final ArrayDeque<Buffer> buffers = new ArrayDeque<>();
    private final AtomicLong unsettled = new AtomicLong();
    private Connection connection;
    private long first; // spans of the connection before the first buffer
    private boolean isAsking; // the connection has ended, and the next daemon is asked for the outcome

    Kept(Pool pool) {
        this.pool = pool;
    }

    /** Starts a new connection, without spans. */
    void begin(Connection c) {
        connection = c;
        first = 0;
        isAsking = false;
        review();
    }

    /**
     * Returns how many spans were handed over and are not settled, according to the daemon. Any
     * thread can call it.
     */
    long unsettled() {
        return unsettled.get();
    }

    /** Reports whether a following daemon could report the outcome. */
    boolean isOn() {
        return connection != null && connection.welcome.settled && !connection.welcome.token.isEmpty();
    }

    boolean isAsking() {
        return isAsking;
    }

    /**
     * Returns the token of the earlier connection for the hello message; empty if there is nothing
     * to ask.
     */
    String earlier() {
        return isAsking ? connection.welcome.token : "";
    }

    /**
     * Keeps a buffer that was handed over completely. Releases its memory if its content was copied
     * or need not be kept.
     */
    void add(Buffer written) {
        review();
        Buffer last = buffers.peekLast();
        if (!isOn()) {
            pool.give(written);
        } else if (last != null && last.takes(written)) {
            last.append(written);
            pool.give(written);
        } else {
            buffers.add(written);
            while (!buffers.isEmpty() && !pool.ensureSpare(buffers.size())) {
                releaseOldest();
            }
        }
    }

    /** Releases settled spans. */
    void review() {
        while (!buffers.isEmpty() && first + buffers.peek().handed <= connection.settled()) {
            releaseOldest();
        }
        unsettled.lazySet(connection.unsettled());
    }

    private void releaseOldest() {
        first += buffers.peek().handed;
        pool.give(buffers.poll());
    }

    /**
     * Records that the daemon crashed or disconnected. cut is the buffer that was being written; it
     * is partially handed over, and can be null.
     */
    void ask(Buffer cut) {
        if (cut != null) {
            buffers.add(cut);
        }
        isAsking = true;
        unsettled.lazySet(connection.unsettled());
    }

    /**
     * Handles the daemon's reply about the earlier connection. Inserts the spans to replay, and
     * those not handed over, at the start of a list. If the earlier daemon said bye and the new one
     * does not know the connection, the earlier one delivered everything.
     */
    Outcomes resolve(List<Long> pairs, List<Buffer> pending) {
        boolean isDelivered = pairs.isEmpty() && connection.ending.isBye();
        Outcomes outcomes = new Outcomes(pairs, isDelivered ? Long.MAX_VALUE : connection.settled());
        outcomes.countMissed(0, first);
        int to = 0;
        for (Buffer buffer = buffers.poll(); buffer != null; buffer = buffers.poll()) {
            int handed = buffer.handed;
            buffer.retainUndelivered(first, outcomes);
            first += handed;
            if (buffer.spans > 0) {
                pending.add(to++, buffer);
            } else {
                pool.give(buffer);
            }
        }
        return outcomes;
    }

    /** Gives up asking for outcomes, and adds spans not handed over to a list. */
    void abandonOutcomes(List<Buffer> pending) {
        for (Buffer buffer = buffers.poll(); buffer != null; buffer = buffers.poll()) {
            if (buffer.spans > 0) {
                pending.add(buffer);
            }
        }
    }

    /** Releases all buffers: no daemon can be asked, or this side has closed. */
    void discard() {
        while (!buffers.isEmpty()) {
            releaseOldest();
        }
        unsettled.lazySet(0);
    }
}
