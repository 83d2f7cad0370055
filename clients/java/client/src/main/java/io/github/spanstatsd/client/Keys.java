package io.github.spanstatsd.client;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.concurrent.TimeUnit;

/**
 * The sender's management of keys: it defines them on each connection before the first buffer that
 * uses them, applies the daemon's limits, and replaces a table that is no longer useful.
 */
final class Keys {
    private static final long APART = TimeUnit.MINUTES.toNanos(1);

    private final int mostKeys;
    private final Stripe[] stripes;
    private volatile KeyTable table;
    private Welcome limits;
    private long since = System.nanoTime();
    private long published;
    private long whole;

    Keys(int mostKeys, Stripe[] stripes, KeyTable table) {
        this.mostKeys = mostKeys;
        this.stripes = stripes;
        this.table = table;
    }

    int count() {
        return table.count();
    }

    /** Applies the daemon's limits. If more numbers are in use, a new table starts. */
    void welcome(Welcome welcome) {
        limits = welcome;
        table.limit(welcome);
        if (!table.fits(welcome)) {
            replace();
        }
    }

    /**
     * Reports whether the daemon accepts the numbers of a table. A table that has exceeded the
     * limit in the meantime is replaced.
     */
    boolean fit(KeyTable defining) {
        boolean fits = defining.fits(limits);
        if (!fits && defining == table) {
            replace();
        }
        return fits;
    }

    /**
     * Replaces the table if it is full and more than a third of the spans since the last check had
     * no number, but at most once per minute. This frees the numbers of keys that are no longer
     * used.
     */
    void review() {
        long now = System.nanoTime();
        if (!table.isFull() || now - since < APART) {
            return;
        }
        long newPublished = 0;
        long newWhole = 0;
        for (Stripe stripe : stripes) {
            newPublished += stripe.published();
            newWhole += stripe.whole();
        }
        boolean isUseless = 3 * (newWhole - whole) > newPublished - published;
        published = newPublished;
        whole = newWhole;
        since = now;
        if (isUseless) {
            replace();
        }
    }

    private void replace() {
        KeyTable fresh = new KeyTable(mostKeys);
        fresh.limit(limits);
        for (Stripe stripe : stripes) {
            stripe.lock();
            stripe.use(fresh);
            stripe.release();
        }
        table = fresh;
    }

    /**
     * Defines the keys of a table that are not defined on the connection yet. A change of the table
     * makes the numbers of the previous one invalid.
     */
    void define(Connection c, KeyTable defining, ByteBuffer scratch) throws IOException {
        if (c.defined != defining) {
            c.defined = defining;
            c.definedKeys = 0;
        }
        int count = defining.count();
        while (c.definedKeys < count) {
            ByteBuffer frame = Messages.define(scratch, defining, c.definedKeys, count);
            int definitions = Messages.definitions(frame);
            c.write(frame);
            c.definedKeys += definitions;
        }
    }
}
