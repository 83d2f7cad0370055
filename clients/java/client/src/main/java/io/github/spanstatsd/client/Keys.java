package io.github.spanstatsd.client;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.concurrent.TimeUnit;

/**
 * What the sender does with keys: it defines them on each connection, in front of the first buffer that needs them, holds
 * them to what the daemon takes, and replaces a table that has become useless.
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

    /** Takes what a daemon takes. Where that is less than what was given before, it begins anew. */
    void welcome(Welcome welcome) {
        limits = welcome;
        table.limit(welcome);
        if (!table.fits(welcome)) {
            replace();
        }
    }

    /** Whether the daemon takes the numbers of a table. One that was given one too many meanwhile is replaced. */
    boolean fit(KeyTable of) {
        boolean fits = of.fits(limits);
        if (!fits && of == table) {
            replace();
        }
        return fits;
    }

    /**
     * Replaces the table where it is full and of no use to a third of the spans that came since the last look, and no
     * sooner than a minute after the last time: keys that come no longer give their places to those that do.
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

    /** Defines the keys of a table that are not defined on the connection yet. Those of another lose their numbers. */
    void define(Connection c, KeyTable of, ByteBuffer scratch) throws IOException {
        if (c.defined != of) {
            c.defined = of;
            c.definedKeys = 0;
        }
        int count = of.count();
        while (c.definedKeys < count) {
            ByteBuffer frame = Messages.define(scratch, of, c.definedKeys, count);
            int definitions = Messages.definitions(frame);
            c.write(frame);
            c.definedKeys += definitions;
        }
    }
}
