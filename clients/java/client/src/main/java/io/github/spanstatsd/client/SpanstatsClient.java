package io.github.spanstatsd.client;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Publishes spans to the daemon. All methods are thread-safe. publish never blocks, and allocates
 * nothing for a learned key. The package comment describes the implementation.
 */
public final class SpanstatsClient implements AutoCloseable {
    /** Flag: the span failed. */
    public static final int ERROR = 1;
    /** Flag: the span is top-level, that is, its trace entered a service with it. */
    public static final int TOP_LEVEL = 2;

    private static final int MOST_STRIPES = 32;
    private static final int FULL = Reason.BUFFER_FULL.ordinal();

    private final Config config;
    private final Shared shared;
    private final Stripe[] stripes; // the length is a power of two
    private final Losses contended = new Losses(); // refused because no stripe could be claimed
    private final Sender sender;
    private final Thread hook;
    private final AtomicBoolean isClosed = new AtomicBoolean();

    private SpanstatsClient(Config config) {
        UnixSocket.check();
        this.config = config;
        Pool pool = new Pool(config.bufferBytes, config.maxKept);
        Gate gate = new Gate();
        KeyTable table = new KeyTable(config.maxKeys);
        stripes = new Stripe[stripes(pool.size())];
        for (int i = 0; i < stripes.length; i++) {
            stripes[i] = new Stripe(pool, gate, table);
        }
        shared = new Shared(gate);
        sender = new Sender(config, shared, pool, stripes, table, this::addRefused);
        hook = config.shutdownHook ? new Thread(null, () -> finish(config.closeTimeout), "spanstatsd-client-shutdown", 0, false) : null;
    }

    /**
     * Returns a client that connects in the background, and keeps trying until it is closed.
     *
     * @throws UnsupportedOperationException before Java 16, which has no Unix sockets
     */
    public static SpanstatsClient open(Config config) {
        SpanstatsClient client = new SpanstatsClient(config);
        client.sender.start();
        if (client.hook != null) {
            try {
                Runtime.getRuntime().addShutdownHook(client.hook);
            } catch (IllegalStateException e) {
                // The virtual machine is already shutting down, so the hook cannot be registered.
            }
        }
        return client;
    }

    /**
     * Twice the number of processors, so that two publishers seldom try the same stripe, but at
     * most half of the buffers, so that the rest is available for sealed ones.
     */
    private static int stripes(int buffers) {
        int want = Math.min(Math.min(2 * Runtime.getRuntime().availableProcessors(), MOST_STRIPES), buffers / 2);
        return Integer.highestOneBit(Math.max(1, want));
    }

    /**
     * Publishes a span. Returns true if the span is buffered; otherwise it is refused, and counted
     * as refused. Null and empty labels are not set. No reference to an argument is kept.
     *
     * @param httpStatus 0 for none
     * @param peerTags null for none
     * @param grpcStatus decimal number
     * @param additionalTags null for none
     * @param durationNanos negative values count as 0
     * @param endEpochNanos end time of the span since 1970
     * @param flags {@link #ERROR}, {@link #TOP_LEVEL}, both or 0
     * @param weight number of spans that a sampled span represents; otherwise 1
     */
    public boolean publish(
            String service, String operation, String resource, String type, String kind,
            TraceRoot traceRoot, int httpStatus, Tags peerTags, String httpMethod, String httpEndpoint,
            String grpcStatus, String serviceSource, boolean synthetics, Tags additionalTags,
            long durationNanos, long endEpochNanos, int flags, double weight) {
        Stripe stripe = claim();
        if (stripe == null) {
            return false;
        }
        int outcome;
        try {
            outcome = stripe.put(text(service), text(operation), text(resource), text(type), text(kind),
                    traceRoot == null ? TraceRoot.NOT_SET : traceRoot, Math.max(0, httpStatus), peerTags, text(httpMethod),
                    text(httpEndpoint), text(grpcStatus), text(serviceSource), synthetics, additionalTags,
                    durationNanos, endEpochNanos, flags, weight);
        } finally {
            stripe.release();
        }
        return signal(outcome);
    }

    /** Publishes a span with labels in an object and a weight of 1. */
    public boolean publish(Labels labels, long durationNanos, long endEpochNanos, int flags) {
        return publish(labels, durationNanos, endEpochNanos, flags, 1);
    }

    /** Publishes a span with labels in an object. */
    public boolean publish(Labels l, long durationNanos, long endEpochNanos, int flags, double weight) {
        return publish(l.service, l.operation, l.resource, l.type, l.kind, l.traceRoot, l.httpStatus, l.peerTags, l.httpMethod,
                l.httpEndpoint, l.grpcStatus, l.serviceSource, l.synthetics, l.additionalTags, durationNanos, endEpochNanos, flags, weight);
    }

    /** Publishes a span with an encoded key and a weight of 1. */
    public boolean publish(EncodedKey key, long durationNanos, long endEpochNanos, int flags) {
        return publish(key, durationNanos, endEpochNanos, flags, 1);
    }

    /** Publishes a span with an encoded key. */
    public boolean publish(EncodedKey key, long durationNanos, long endEpochNanos, int flags, double weight) {
        Stripe stripe = claim();
        if (stripe == null) {
            return false;
        }
        int outcome;
        try {
            outcome = stripe.put(key, durationNanos, endEpochNanos, flags, weight);
        } finally {
            stripe.release();
        }
        return signal(outcome);
    }

    private static String text(String label) {
        return label == null ? "" : label;
    }

    /**
     * Tries every stripe once, starting with the thread's own. Returns null if all are claimed; the
     * span is then refused and counted. A claimed stripe is being written by another publisher, so
     * trying again would be waiting.
     */
    private Stripe claim() {
        int mask = stripes.length - 1;
        int home = (int) (Thread.currentThread().getId() * 0x9e3779b97f4a7c15L >>> 40) & mask;
        int why = shared.gate.why();
        if (why != Gate.OPEN) {
            stripes[home].refuse(why);
            shared.arm();
            return null;
        }
        for (int i = 0; i < stripes.length; i++) {
            Stripe stripe = stripes[home + i & mask];
            if (stripe.claim()) {
                return stripe;
            }
        }
        contended.add(FULL, 1);
        shared.arm();
        return null;
    }

    /** Notifies the sender if there is new work, and reports whether the span was accepted. */
    private boolean signal(int outcome) {
        if (outcome == Stripe.ACCEPTED) {
            shared.arm();
            return true;
        }
        shared.arm();
        if (outcome == Stripe.SEALED || outcome == FULL) {
            shared.wake();
        }
        return outcome < 0;
    }

    /**
     * Sends all spans published before, and requests a flush from the daemon. The future completes
     * when every destination has accepted all spans. It fails with a {@link FlushException} if one
     * has not, or if the connection ended. While the daemon is unreachable it waits: use a timeout,
     * and cancel the future to release it. At most 1024 flushes can wait; further ones fail
     * immediately. Dependent stages run on the client's thread, which sends nothing during that
     * time, unless they are async.
     */
    public CompletableFuture<Void> flush() {
        return sender.flush();
    }

    /** Returns the statistics of the client, at any time, also after close. */
    public Stats stats() {
        // Later stages are read first, so that a span that moves in the meantime is still counted
        // as buffered instead of making the buffered count negative.
        Stats stats = new Stats();
        sender.addTo(stats);
        addRefused(stats.refused);
        for (Stripe stripe : stripes) {
            stats.published += stripe.published();
        }
        return stats;
    }

    private void addRefused(long[] totals) {
        contended.addTo(totals);
        for (Stripe stripe : stripes) {
            stripe.refused.addTo(totals);
        }
    }

    /**
     * Returns the daemon's latest features. The object stays the same until a value changes. Before
     * the first message, statistics are wanted and all lists are empty.
     */
    public Features features() {
        return shared.features;
    }

    /**
     * Refuses further spans, sends the buffered ones, requests a flush, and waits until all spans
     * are settled and the daemon has closed its side. Spans not sent within the timeout are counted
     * as lost. {@link Stats#unsettled} returns the number of spans without an outcome, for example
     * because a destination is not accepting. If there is no daemon, close does not wait for one,
     * unless the last daemon crashed and the next one can report the outcome of its spans. A second
     * call waits for the first.
     *
     * @return whether all accepted spans are with the daemon, as far as the client knows
     */
    public boolean close(Duration timeout) {
        if (hook != null && !isClosed.getAndSet(true)) {
            try {
                Runtime.getRuntime().removeShutdownHook(hook);
            } catch (IllegalStateException e) {
                // The virtual machine is shutting down, and its hook closes the client too.
            }
        }
        return finish(timeout);
    }

    /** Closes the client within the configured timeout. */
    @Override
    public void close() {
        close(config.closeTimeout);
    }

    private boolean finish(Duration timeout) {
        shared.gate.shut(Reason.CLOSED);
        return sender.finish(timeout);
    }
}
