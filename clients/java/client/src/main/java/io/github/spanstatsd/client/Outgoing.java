package io.github.spanstatsd.client;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The sender's sealed buffers, the oldest first. It sends them, and restores them if a daemon
 * crashes.
 */
final class Outgoing {
    private final Shared shared;
    private final Pool pool;
    private final Stripe[] stripes;
    private final Keys keys;
    private final Reports reports;
    private final ByteBuffer scratch;
    private final List<Buffer> pending;
    private final Kept kept;
    private final AtomicLong sent = new AtomicLong();

    Outgoing(Shared shared, Pool pool, Stripe[] stripes, Keys keys, Reports reports, ByteBuffer scratch) {
        this.shared = shared;
        this.pool = pool;
        this.stripes = stripes;
        this.keys = keys;
        this.reports = reports;
        this.scratch = scratch;
        kept = new Kept(pool);
        pending = new ArrayList<>(pool.size());
    }

    void addTo(Stats stats) {
        stats.unsettled = kept.unsettled();
        stats.sent = sent.get();
    }

    /** Reports whether there is nothing to send and nothing to ask a daemon. */
    boolean isEmpty() {
        return pending.isEmpty() && !kept.isAsking();
    }

    /** Reports whether sent spans are kept until they are settled. */
    boolean isKept() {
        return kept.isOn();
    }

    /** Returns how many spans were handed over and are not settled. */
    long unsettled() {
        return kept.unsettled();
    }

    /** Reports whether the next daemon is asked for outcomes of the last connection. */
    boolean isAsking() {
        return kept.isAsking();
    }

    /** Returns the token of that connection, or an empty string. */
    String earlier() {
        return kept.earlier();
    }

    /**
     * Starts a new connection. Returns the outcomes of the last connection; null if they were not
     * asked for or everything was delivered.
     */
    Outcomes begin(Connection c) {
        Outcomes outcomes = null;
        if (kept.isAsking()) {
            outcomes = kept.resolve(c.welcome.earlier, pending);
            sent.addAndGet(-outcomes.replayed);
            reports.ambiguous(outcomes.ambiguous);
            reports.unconfirmed(outcomes.lost);
        }
        kept.begin(c);
        return outcomes != null && outcomes.isWorthTelling() ? outcomes : null;
    }

    /** Processes the latest settlement. */
    void review() {
        kept.review();
    }

    /**
     * Records that the connection has ended: the daemon crashed, or it disconnected and can still
     * be killed, or this side closed it.
     */
    void end(Connection c, boolean died, boolean isClosedHere) {
        boolean isCut = !pending.isEmpty() && pending.get(0).handed > 0;
        if ((died || c.ending.isBye() && !isClosedHere) && kept.isOn() && c.unsettled() > 0) {
            kept.ask(isCut ? pending.remove(0) : null);
            return;
        }
        if (died) {
            reports.unconfirmed(c.unsettled());
        }
        if (isCut) {
            pending.get(0).discard();
        }
        kept.discard();
    }

    /** Reports whether publishers have sealed more buffers. */
    boolean hasSealed() {
        return pool.hasSealed();
    }

    /**
     * Seals the buffers of all stripes and takes them. It disarms the client first, so that a
     * publisher that writes to a stripe afterwards arms it again.
     */
    void sealAll() {
        shared.disarm();
        for (Stripe stripe : stripes) {
            stripe.lock();
            stripe.seal();
            stripe.release();
        }
        pool.takeSealed(pending);
    }

    /** Writes the sealed buffers. After a failure, messages that were not handed over remain. */
    void write(Connection c) throws IOException {
        pool.takeSealed(pending);
        int done = 0;
        try {
            for (Buffer buffer : pending) {
                if (!shared.features.stats()) {
                    lose(Reason.NOT_WANTED, buffer);
                } else if (!keys.fit(buffer.table)) {
                    lose(Reason.TOO_LARGE, buffer);
                } else {
                    write(c, buffer);
                    kept.add(buffer);
                }
                done++;
            }
        } finally {
            pending.subList(0, done).clear();
        }
    }

    private void write(Connection c, Buffer buffer) throws IOException {
        keys.define(c, buffer.table, scratch);
        ByteBuffer bytes = buffer.bytes();
        int first = bytes.position();
        try {
            c.write(bytes);
        } finally {
            int spans = buffer.handOver(bytes.position() - first);
            c.handedOver(spans);
            sent.addAndGet(spans);
        }
    }

    private void lose(Reason reason, Buffer buffer) {
        reports.lose(reason, buffer.spans);
        pool.give(buffer);
    }

    /** Counts all remaining spans as lost, and reports whether there were none. */
    boolean loseAll(Reason reason) {
        sealAll();
        kept.abandonOutcomes(pending);
        boolean wasNothing = pending.isEmpty();
        for (Buffer buffer : pending) {
            lose(reason, buffer);
        }
        pending.clear();
        return wasNothing;
    }
}
