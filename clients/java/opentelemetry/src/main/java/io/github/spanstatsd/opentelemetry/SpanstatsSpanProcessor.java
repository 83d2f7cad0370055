package io.github.spanstatsd.opentelemetry;

import io.github.spanstatsd.client.Config;
import io.github.spanstatsd.client.Labels;
import io.github.spanstatsd.client.Origin;
import io.github.spanstatsd.client.SpanstatsClient;
import io.github.spanstatsd.client.Stats;
import io.opentelemetry.api.trace.StatusCode;
import io.opentelemetry.context.Context;
import io.opentelemetry.sdk.common.CompletableResultCode;
import io.opentelemetry.sdk.resources.Resource;
import io.opentelemetry.sdk.trace.ReadWriteSpan;
import io.opentelemetry.sdk.trace.ReadableSpan;
import io.opentelemetry.sdk.trace.SpanProcessor;
import io.opentelemetry.sdk.trace.data.SpanData;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * Publishes each ended span to spanstatsd, which counts it. A processor receives only recorded
 * spans, so wrap the provider's sampler in an {@link AlwaysRecordSampler}: then every span is
 * counted, and only sampled ones are exported.
 *
 * <p>A span has a weight of 1. The sampling threshold in its tracestate is ignored, because every
 * span of this process is recorded, whether its trace was sampled or not.
 *
 * <p>It is thread-safe, and never blocks: spans that do not fit into the buffers are counted as
 * lost. The values of a span are copied before {@link #onEnd} returns, and no reference to it is
 * kept.
 */
public final class SpanstatsSpanProcessor implements SpanProcessor {
    private static final Logger LOG = Logger.getLogger(SpanstatsSpanProcessor.class.getName());

    private final SpanstatsClient client;
    private final CompletableFuture<Origin> origin;
    private final boolean keepsNames;
    private volatile SpanReaders readers;
    private final ConnectionLog log;
    private final AtomicBoolean isClosing = new AtomicBoolean();
    private final AtomicBoolean isBroken = new AtomicBoolean();
    private final CompletableResultCode closed = new CompletableResultCode();

    private SpanstatsSpanProcessor(SpanstatsClient client, CompletableFuture<Origin> origin, ConnectionLog log, boolean keepsNames) {
        this.keepsNames = keepsNames;
        readers = new SpanReaders("", keepsNames);
        this.client = client;
        this.origin = origin;
        this.log = log;
    }

    /**
     * Creates a processor and allocates its memory. It connects after {@link #begin} or the first
     * ended span has set the origin of the spans.
     */
    static SpanstatsSpanProcessor open(Config.Builder config) {
        boolean keepsNames = SpanNames.areKept(System.getenv(SpanNames.VARIABLE));
        ConnectionLog log = new ConnectionLog(LOG);
        CompletableFuture<Origin> origin = new CompletableFuture<>();
        SpanstatsClient client = SpanstatsClient.open(config.origin(origin).listener(log).shutdownHook(false).build());
        return new SpanstatsSpanProcessor(client, origin, log, keepsNames);
    }

    /** Starts counting for a provider with the given resource. */
    SpanstatsSpanProcessor begin(Resource resource) {
        readers = new SpanReaders(Origins.service(resource), keepsNames);
        origin.complete(Origins.of(resource));
        return this;
    }

    /**
     * Creates a processor for a provider with the given resource, which determines the origin. The
     * environment variable SPANSTATSD_SOCKET sets the socket, SPANSTATSD_SPAN_NAMES the names of
     * spans. It does not wait for a daemon.
     *
     * @throws IllegalArgumentException if a variable has an invalid value
     * @throws UnsupportedOperationException before Java 16, which has no Unix sockets
     */
    public static SpanstatsSpanProcessor create(Resource resource) {
        return create(resource, Config.builder());
    }

    /**
     * Creates a processor with a configuration. This method sets its origin, listener and shutdown
     * hook.
     */
    public static SpanstatsSpanProcessor create(Resource resource, Config.Builder config) {
        return open(config).begin(resource);
    }

    @Override
    public void onStart(Context parent, ReadWriteSpan span) {}

    @Override
    public boolean isStartRequired() {
        return false;
    }

    @Override
    public boolean isEndRequired() {
        return true;
    }

    @Override
    public void onEnd(ReadableSpan ended) {
        try {
            count(ended.toSpanData()); // only SpanData has a status and an end time
        } catch (RuntimeException | LinkageError e) {
            if (isBroken.compareAndSet(false, true)) { // an internal error must not affect the application
                LOG.log(Level.WARNING, "count a span: it is not counted, nor are others like it; please report this", e);
            }
        }
    }

    private void count(SpanData span) {
        if (!origin.isDone()) {
            begin(span.getResource());
        }
        SpanReaders readers = this.readers;
        int place = readers.take();
        SpanReader reader = readers.at(place);
        try {
            publish(span, reader.read(span));
        } finally {
            reader.clear();
            readers.give(place);
        }
    }

    private void publish(SpanData span, Labels labels) {
        int flags = SpanReader.isTopLevel(span) ? SpanstatsClient.TOP_LEVEL : 0;
        if (span.getStatus().getStatusCode() == StatusCode.ERROR) {
            flags |= SpanstatsClient.ERROR;
        }
        long end = span.getEndEpochNanos();
        client.publish(labels, Math.max(0, end - span.getStartEpochNanos()), end, flags);
    }

    /** Returns the statistics of ended spans. */
    public Stats stats() {
        return client.stats();
    }

    /**
     * Sends buffered spans and requests a flush. The result completes when all destinations have
     * accepted the spans.
     */
    @Override
    public CompletableResultCode forceFlush() {
        if (!origin.isDone()) { // no span has ended, so there is nothing to flush
            return CompletableResultCode.ofSuccess();
        }
        CompletableResultCode flushed = new CompletableResultCode();
        client.flush().whenComplete((nothing, failure) -> {
            if (failure == null) {
                flushed.succeed();
            } else {
                flushed.fail();
            }
        });
        return flushed;
    }

    /** Sends buffered spans and closes the connection, on a separate thread. */
    @Override
    public CompletableResultCode shutdown() {
        if (isClosing.compareAndSet(false, true)) {
            log.end();
            Thread closing = new Thread(this::end, "spanstatsd-close");
            closing.setDaemon(true);
            closing.start();
        }
        return closed;
    }

    private void end() {
        client.close();
        closed.succeed();
    }
}
