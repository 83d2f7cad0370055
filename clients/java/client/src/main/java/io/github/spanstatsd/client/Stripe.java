package io.github.spanstatsd.client;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.concurrent.locks.LockSupport;

/** Separates the fields of a stripe from those of the previous object by a cache line. */
abstract class StripePadding {
    long p0, p1, p2, p3, p4, p5, p6, p7, p8, p9, p10, p11, p12, p13, p14, p15;
}

/** The fields of a stripe. */
abstract class StripeFields extends StripePadding {
    int claimed;
    Buffer buffer; // buffer being filled, or null
    KeyTable table;
    long published;
    long whole; // number of spans whose key had no number
}

/**
 * A place where publishers write spans. There are several, so that publishers on different
 * processors use different ones. The thread that has claimed a stripe owns its fields.
 */
final class Stripe extends StripeFields {
    /**
     * Results of publishing: the span was accepted; it was accepted and a buffer was sealed; or the
     * ordinal of the {@link Reason} for refusing it.
     */
    static final int ACCEPTED = -1;
    static final int SEALED = -2;

    private static final int FULL = Reason.BUFFER_FULL.ordinal();
    private static final VarHandle CLAIMED;
    private static final VarHandle PUBLISHED;
    private static final VarHandle WHOLE;

    static {
        try {
            MethodHandles.Lookup lookup = MethodHandles.lookup();
            CLAIMED = lookup.findVarHandle(StripeFields.class, "claimed", int.class);
            PUBLISHED = lookup.findVarHandle(StripeFields.class, "published", long.class);
            WHOLE = lookup.findVarHandle(StripeFields.class, "whole", long.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    long q0, q1, q2, q3, q4, q5, q6, q7, q8, q9, q10, q11, q12, q13, q14, q15;

    final Losses refused = new Losses();
    private final Pool pool;
    private final Gate gate;

    Stripe(Pool pool, Gate gate, KeyTable table) {
        this.pool = pool;
        this.gate = gate;
        this.table = table;
    }

    boolean claim() {
        return (int) CLAIMED.getOpaque(this) == 0 && CLAIMED.compareAndSet(this, 0, 1);
    }

    void release() {
        CLAIMED.setRelease(this, 0);
    }

    /** Claims the stripe for the sender, which is the only thread that waits. */
    void lock() {
        for (int tries = 0; !claim(); tries++) {
            if (tries < 100) {
                Thread.onSpinWait();
            } else {
                LockSupport.parkNanos(20_000);
            }
        }
    }

    long published() {
        return (long) PUBLISHED.getAcquire(this);
    }

    long whole() {
        return (long) WHOLE.getAcquire(this);
    }

    /** Passes the buffer, if there is one, to the sender. */
    void seal() {
        if (buffer != null && buffer.spans > 0) {
            pool.seal(buffer);
            buffer = null;
        }
    }

    /** Switches to another table. */
    void use(KeyTable table) {
        seal();
        if (buffer != null) {
            buffer.empty(table);
        }
        this.table = table;
    }

    int put(
            String service, String operation, String resource, String type, String kind,
            TraceRoot traceRoot, int httpStatus, Tags peerTags, String httpMethod, String httpEndpoint,
            String grpcStatus, String serviceSource, boolean synthetics, Tags additionalTags,
            long duration, long end, int flags, double weight) {
        int hash = Key.hash(service, operation, resource, type, kind, traceRoot, httpStatus, peerTags, httpMethod, httpEndpoint,
                grpcStatus, serviceSource, synthetics, additionalTags);
        Key key = table.find(hash, service, operation, resource, type, kind, traceRoot, httpStatus, peerTags, httpMethod,
                httpEndpoint, grpcStatus, serviceSource, synthetics, additionalTags);
        if (key != null) {
            return numbered(key, duration, end, flags, weight);
        }
        int outcome = room(Buffer.ROOM + KeyWriter.bound(service, operation, resource, type, kind, peerTags, httpMethod, httpEndpoint,
                grpcStatus, serviceSource, additionalTags));
        if (outcome >= 0) {
            return refuse(outcome);
        }
        int from = buffer.beginWhole(weight);
        int to = KeyWriter.put(buffer.memory(), from, service, operation, resource, type, kind, traceRoot, httpStatus, peerTags,
                httpMethod, httpEndpoint, grpcStatus, serviceSource, synthetics, additionalTags);
        buffer.endWhole(from, to, duration, end, flags, weight);
        countWhole();
        if (table.wasSeenBefore(hash)) {
            table.learn(to - from, hash, service, operation, resource, type, kind, traceRoot, httpStatus, peerTags, httpMethod,
                    httpEndpoint, grpcStatus, serviceSource, synthetics, additionalTags);
        }
        return outcome;
    }

    int put(EncodedKey encoded, long duration, long end, int flags, double weight) {
        Key key = encoded.in(table);
        if (key != null) {
            return numbered(key, duration, end, flags, weight);
        }
        int outcome = room(Buffer.ROOM + encoded.bytes.length);
        if (outcome >= 0) {
            return refuse(outcome);
        }
        int from = buffer.beginWhole(weight);
        for (int i = 0; i < encoded.bytes.length; i++) {
            buffer.memory().put(from + i, encoded.bytes[i]);
        }
        buffer.endWhole(from, from + encoded.bytes.length, duration, end, flags, weight);
        countWhole();
        return outcome;
    }

    private int numbered(Key key, long duration, long end, int flags, double weight) {
        int outcome = room(Buffer.ROOM);
        if (outcome >= 0) {
            return refuse(outcome);
        }
        buffer.numbered(key, duration, end, flags, weight);
        PUBLISHED.setRelease(this, published + 1);
        return outcome;
    }

    private void countWhole() {
        WHOLE.setRelease(this, whole + 1);
        PUBLISHED.setRelease(this, published + 1);
    }

    /**
     * Ensures that the buffer has a number of free bytes. Reports whether a buffer was sealed for
     * that, or why it is not possible.
     */
    private int room(int bytes) {
        // The gate is checked with the claim. So after the gate was shut, a thread that claims the
        // stripe to seal it knows that no more spans are added.
        int why = gate.why();
        if (why != Gate.OPEN) {
            return why;
        }
        if (buffer != null && buffer.left() >= bytes) {
            return ACCEPTED;
        }
        return next();
    }

    private int next() {
        int outcome = ACCEPTED;
        if (buffer != null) {
            pool.seal(buffer);
            buffer = null;
            outcome = SEALED;
        }
        buffer = pool.take(table);
        return buffer == null ? FULL : outcome;
    }

    int refuse(int reason) {
        refused.add(reason, 1);
        return reason;
    }
}
