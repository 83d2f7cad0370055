package io.github.spanstatsd.client;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Publishes spans to the daemon. Its methods may be called from any thread; publish never waits and, for
 * a key that it knows, allocates nothing. The package says how it works.
 */
public final class SpanstatsClient implements AutoCloseable {
    /** A flag: the span failed. */
    public static final int ERROR = 1;
    /** A flag: through this span its trace entered a service. */
    public static final int TOP_LEVEL = 2;

    private static final int MOST_STRIPES = 32;
    private static final int FULL = Reason.BUFFER_FULL.ordinal();

    private final Config config;
    private final Shared shared;
    private final Stripe[] stripes; // a power of two of them
    private final Losses contended = new Losses(); // refused while no stripe could be claimed
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
     * Returns a client, which connects in the background and goes on trying for as long as it lives.
     *
     * @throws UnsupportedOperationException where Java has no Unix sockets: before release 16
     */
    public static SpanstatsClient open(Config config) {
        SpanstatsClient client = new SpanstatsClient(config);
        client.sender.start();
        if (client.hook != null) {
            try {
                Runtime.getRuntime().addShutdownHook(client.hook);
            } catch (IllegalStateException e) {
                // The virtual machine ends already: there is nobody left to call the hook.
            }
        }
        return client;
    }

    /** Twice the processors, so that two publishers seldom try the same one; but half of the buffers stay for what is sealed. */
    private static int stripes(int buffers) {
        int want = Math.min(Math.min(2 * Runtime.getRuntime().availableProcessors(), MOST_STRIPES), buffers / 2);
        return Integer.highestOneBit(Math.max(1, want));
    }

    /**
     * Hands over a span. True: it is buffered. False: it is not, and is counted as refused. A label that is null
     * or empty is not set. Nothing that is given is kept.
     *
     * @param httpStatus 0 for none
     * @param peerTags null for none
     * @param grpcStatus decimal text
     * @param additionalTags null for none
     * @param durationNanos less than 0 counts as 0
     * @param endEpochNanos when the span ended, since 1970
     * @param flags {@link #ERROR}, {@link #TOP_LEVEL}, both or 0
     * @param weight how many spans this one stands for, where it was sampled before; else 1
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
        return told(outcome);
    }

    /** The same with labels in an object, each span standing for one. */
    public boolean publish(Labels labels, long durationNanos, long endEpochNanos, int flags) {
        return publish(labels, durationNanos, endEpochNanos, flags, 1);
    }

    /** The same with labels in an object. */
    public boolean publish(Labels l, long durationNanos, long endEpochNanos, int flags, double weight) {
        return publish(l.service, l.operation, l.resource, l.type, l.kind, l.traceRoot, l.httpStatus, l.peerTags, l.httpMethod,
                l.httpEndpoint, l.grpcStatus, l.serviceSource, l.synthetics, l.additionalTags, durationNanos, endEpochNanos, flags, weight);
    }

    /** The same with a key that was made before, each span standing for one. */
    public boolean publish(EncodedKey key, long durationNanos, long endEpochNanos, int flags) {
        return publish(key, durationNanos, endEpochNanos, flags, 1);
    }

    /** The same with a key that was made before. */
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
        return told(outcome);
    }

    private static String text(String label) {
        return label == null ? "" : label;
    }

    /**
     * Tries every stripe once, from the thread's own one on. Null: the span is refused, and counted. A stripe that another
     * has claimed belongs to a publisher who is writing to it at this moment: to try again would be to wait.
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

    /** Has the sender look where there is something new to it. */
    private boolean told(int outcome) {
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
     * Sends everything that was published before and asks the daemon to report now. The answer comes when every
     * destination has accepted everything, and is a {@link FlushException} where one has not, or the connection ended
     * before. While the daemon is away it waits for it: get it with a time limit, and cancel it to let go of it. At most
     * 1024 wait; one more fails at once.
     * What is chained to it runs on the client's own thread, which sends nothing meanwhile, unless it is chained as async.
     */
    public CompletableFuture<Void> flush() {
        return sender.flush();
    }

    /** The books. They may be asked at any time, also after close. */
    public Stats stats() {
        // What has left is read before what has come, so that a span that passes through meanwhile is still
        // in the buffers, not there less than no time.
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
     * What the daemon said last. It is the same object until something in it changes. Before it
     * said anything statistics are wanted, and the lists are empty.
     */
    public Features features() {
        return shared.features;
    }

    /**
     * Refuses what is published from here on, sends what is buffered, asks for a report, and waits until the daemon has said
     * what became of everything, and has closed its end. What is not sent when the time is over is counted as lost, and
     * {@link Stats#unsettled} says of how much the outcome was not seen, which may be because a destination did not take it just
     * now. If nobody listens on the socket, it does not wait for somebody to come, unless the last daemon died and the next
     * one may say what became of what that one had. A second call waits for the first.
     *
     * @return whether all that was accepted is with the daemon, as far as the client was told
     */
    public boolean close(Duration timeout) {
        if (hook != null && !isClosed.getAndSet(true)) {
            try {
                Runtime.getRuntime().removeShutdownHook(hook);
            } catch (IllegalStateException e) {
                // The virtual machine ends, and its hook closes the client too.
            }
        }
        return finish(timeout);
    }

    /** The same within the config's limit. */
    @Override
    public void close() {
        close(config.closeTimeout);
    }

    private boolean finish(Duration timeout) {
        shared.gate.shut(Reason.CLOSED);
        return sender.finish(timeout);
    }
}
