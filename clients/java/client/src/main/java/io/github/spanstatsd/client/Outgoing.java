package io.github.spanstatsd.client;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

/** The sealed buffers that are the sender's, the oldest first, how they go out, and how they come back where a daemon dies. */
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

    /** Whether there is nothing that a daemon is wanted for. */
    boolean isEmpty() {
        return pending.isEmpty() && !kept.isAsking();
    }

    /** Whether what is handed over is kept until it is settled. */
    boolean isKept() {
        return kept.isOn();
    }

    /** How many spans were handed over and are not settled. */
    long unsettled() {
        return kept.unsettled();
    }

    /** Whether the next daemon is to say what became of what the last one had. */
    boolean isAsking() {
        return kept.isAsking();
    }

    /** The token of the connection that it is asked about, or nothing. */
    String earlier() {
        return kept.earlier();
    }

    /** Begins with a connection. Returns what became of what the last daemon had, null where it was not asked or has delivered all. */
    Outcomes begin(Connection c) {
        Outcomes told = null;
        if (kept.isAsking()) {
            told = kept.resolve(c.welcome.earlier, pending);
            sent.addAndGet(-told.again);
            reports.ambiguous(told.ambiguous);
            reports.unconfirmed(told.lost);
        }
        kept.begin(c);
        return told != null && told.isWorthTelling() ? told : null;
    }

    /** Takes note of what is settled. */
    void review() {
        kept.review();
    }

    /** Takes note that the connection has ended, because the daemon died or left, which may be killed yet, or because this side left. */
    void end(Connection c, boolean died, boolean hasLeft) {
        boolean isCut = !pending.isEmpty() && pending.get(0).handed > 0;
        if ((died || c.ending.isBye() && !hasLeft) && kept.isOn() && c.unsettled() > 0) {
            kept.ask(isCut ? pending.remove(0) : null);
            return;
        }
        if (died) {
            reports.unconfirmed(c.unsettled());
        }
        if (isCut) {
            pending.get(0).letGo();
        }
        kept.letGo();
    }

    /** Whether publishers have sealed more. */
    boolean hasSealed() {
        return pool.hasSealed();
    }

    /** Takes what the stripes hold. The client is disarmed first, so whoever puts something into a stripe after that arms it anew. */
    void sealAll() {
        shared.disarm();
        for (Stripe stripe : stripes) {
            stripe.lock();
            stripe.seal();
            stripe.release();
        }
        pool.takeSealed(pending);
    }

    /** Writes what is sealed. What fails stays, less what was handed over. */
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

    /** Counts all that is left as lost, and returns whether that is nothing. */
    boolean loseAll(Reason reason) {
        sealAll();
        kept.forgo(pending);
        boolean wasNothing = pending.isEmpty();
        for (Buffer buffer : pending) {
            lose(reason, buffer);
        }
        pending.clear();
        return wasNothing;
    }
}
