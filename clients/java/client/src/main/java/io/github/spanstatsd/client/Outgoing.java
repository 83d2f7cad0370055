package io.github.spanstatsd.client;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

/** The sealed buffers that are the sender's, the oldest first, and how they go out. */
final class Outgoing {
    private final Shared shared;
    private final Pool pool;
    private final Stripe[] stripes;
    private final Keys keys;
    private final Reports reports;
    private final ByteBuffer scratch;
    private final List<Buffer> pending;
    private final AtomicLong sent = new AtomicLong();

    Outgoing(Shared shared, Pool pool, Stripe[] stripes, Keys keys, Reports reports, ByteBuffer scratch) {
        this.shared = shared;
        this.pool = pool;
        this.stripes = stripes;
        this.keys = keys;
        this.reports = reports;
        this.scratch = scratch;
        pending = new ArrayList<>(pool.size());
    }

    /** Spans of which the socket took every byte. */
    long sent() {
        return sent.get();
    }

    boolean isEmpty() {
        return pending.isEmpty();
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
                    reports.lose(Reason.NOT_WANTED, buffer.spans);
                } else if (!keys.fit(buffer.table)) {
                    reports.lose(Reason.TOO_LARGE, buffer.spans);
                } else {
                    write(c, buffer);
                }
                pool.give(buffer);
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
        int spans = buffer.spans;
        try {
            c.write(bytes);
        } catch (IOException e) {
            spans = buffer.handOver(bytes.position() - first);
            throw e;
        } finally {
            c.handedOver(spans);
            sent.addAndGet(spans);
        }
    }

    /** Counts all that is left as lost, and returns whether that is nothing. */
    boolean loseAll(Reason reason) {
        sealAll();
        boolean wasNothing = pending.isEmpty();
        for (Buffer buffer : pending) {
            reports.lose(reason, buffer.spans);
            pool.give(buffer);
        }
        pending.clear();
        return wasNothing;
    }
}
