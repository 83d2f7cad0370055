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
 * Hands each span that ends to spanstatsd, which counts it. It sees the spans that are recorded, so
 * give the provider an {@link AlwaysRecordSampler} around its sampler: then every span is counted,
 * and only those that are sampled are exported.
 *
 * <p>A span counts once. What its tracestate says of sampling elsewhere weighs nothing here, because
 * every span of this process is recorded, whether its trace was sampled or not.
 *
 * <p>Any thread may end spans. None of them waits: what can't be buffered is counted as lost. What
 * is read of a span is copied before {@link #onEnd} returns, and nothing refers to it afterwards.
 */
public final class SpanstatsSpanProcessor implements SpanProcessor {
    private static final Logger LOG = Logger.getLogger(SpanstatsSpanProcessor.class.getName());

    private final SpanstatsClient client;
    private final CompletableFuture<Origin> origin;
    private volatile SpanReaders readers = new SpanReaders("");
    private final ConnectionLog log;
    private final AtomicBoolean isClosing = new AtomicBoolean();
    private final AtomicBoolean isBroken = new AtomicBoolean();
    private final CompletableResultCode closed = new CompletableResultCode();

    private SpanstatsSpanProcessor(SpanstatsClient client, CompletableFuture<Origin> origin, ConnectionLog log) {
        this.client = client;
        this.origin = origin;
        this.log = log;
    }

    /** Makes one that has all the memory that it needs, and connects when {@link #begin} says whose spans these are. */
    static SpanstatsSpanProcessor open(Config.Builder config) {
        ConnectionLog log = new ConnectionLog(LOG);
        CompletableFuture<Origin> origin = new CompletableFuture<>();
        SpanstatsClient client = SpanstatsClient.open(config.origin(origin).listener(log).shutdownHook(false).build());
        return new SpanstatsSpanProcessor(client, origin, log);
    }

    /** Has it count for a provider with that resource. */
    SpanstatsSpanProcessor begin(Resource resource) {
        readers = new SpanReaders(Origins.service(resource));
        origin.complete(Origins.of(resource));
        return this;
    }

    /**
     * Makes one for a provider with that resource, which says whose spans these are. The socket is what
     * the variable SPANSTATSD_SOCKET says. It does not wait for a daemon.
     *
     * @throws UnsupportedOperationException before Java 16, which has no Unix sockets
     */
    public static SpanstatsSpanProcessor create(Resource resource) {
        return create(resource, Config.builder());
    }

    /** The same with a configuration, of which the origin, the listener and the hook are set here. */
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
        SpanReaders readers = this.readers;
        int place = readers.take();
        SpanReader reader = readers.at(place);
        try {
            SpanData span = ended.toSpanData(); // what alone has a status and an end
            publish(span, reader.read(span));
        } catch (RuntimeException | LinkageError e) {
            if (isBroken.compareAndSet(false, true)) { // a defect of ours is not the application's
                LOG.log(Level.WARNING, "count a span: it is not counted, nor are others like it; please report this", e);
            }
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

    /** What became of the spans that ended. */
    public Stats stats() {
        return client.stats();
    }

    /** Sends what is buffered, and has the daemon report it. It is done when all destinations have it. */
    @Override
    public CompletableResultCode forceFlush() {
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

    /** Sends what is buffered and closes the connection, on a thread of its own. */
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
