package io.github.spanstatsd.opentelemetry;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import io.github.spanstatsd.client.Config;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.api.trace.Tracer;
import io.opentelemetry.context.Context;
import io.opentelemetry.sdk.resources.Resource;
import io.opentelemetry.sdk.trace.ReadWriteSpan;
import io.opentelemetry.sdk.trace.ReadableSpan;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import io.opentelemetry.sdk.trace.SpanProcessor;
import io.opentelemetry.sdk.trace.samplers.Sampler;
import java.lang.management.ManagementFactory;
import java.lang.ref.WeakReference;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SpanstatsSpanProcessorTest {
    private static final AttributeKey<String> METHOD = AttributeKey.stringKey("http.request.method");
    private static final AttributeKey<String> ROUTE = AttributeKey.stringKey("http.route");
    private static final AttributeKey<Long> STATUS = AttributeKey.longKey("http.response.status_code");
    private static final AttributeKey<String> ADDRESS = AttributeKey.stringKey("server.address");

    @TempDir
    private Path directory;

    /** Returns a processor without a daemon: spans wait in its buffer. */
    private SpanstatsSpanProcessor processor() {
        return SpanstatsSpanProcessor.create(Resource.getDefault(), Config.builder().socket(directory.resolve("s").toString()));
    }

    private static SdkTracerProvider provider(SpanProcessor processor) {
        return SdkTracerProvider.builder()
                .setSampler(AlwaysRecordSampler.of(Sampler.alwaysOff()))
                .addSpanProcessor(processor)
                .build();
    }

    private static void request(Tracer tracer, String address) {
        Span span = tracer.spanBuilder("GET /carts/{id}").setSpanKind(SpanKind.SERVER).startSpan();
        span.setAttribute(METHOD, "GET");
        span.setAttribute(ROUTE, "/carts/{id}");
        span.setAttribute(STATUS, 200L);
        span.setAttribute(ADDRESS, address);
        span.end();
    }

    @Test
    void unsampledSpans_arePublished() {
        SpanstatsSpanProcessor processor = processor();
        try (SdkTracerProvider provider = provider(processor)) {
            Tracer tracer = provider.get("test");
            for (int i = 0; i < 1000; i++) {
                request(tracer, "shop");
            }
            assertEquals(1000, processor.stats().published());
            assertEquals(0, processor.stats().refused());
        }
    }

    /** After shutdown spans are refused and counted as refused, and nothing fails. */
    @Test
    void afterShutdown_nothingIsPublished() {
        SpanstatsSpanProcessor processor = processor();
        SdkTracerProvider provider = provider(processor);
        Tracer tracer = provider.get("test");
        request(tracer, "shop");
        assertTrue(processor.shutdown().join(1, TimeUnit.MINUTES).isSuccess());
        request(tracer, "shop");
        assertEquals(1, processor.stats().published());
        assertEquals(1, processor.stats().refused());
        assertTrue(processor.shutdown().join(1, TimeUnit.MINUTES).isSuccess(), "a second time");
    }

    /**
     * Threads end spans while other threads are ending theirs, more at a time than there are
     * readers.
     */
    @Test
    void publish_byManyThreads() throws InterruptedException {
        SpanstatsSpanProcessor processor = processor();
        try (SdkTracerProvider provider = provider(processor)) {
            Tracer tracer = provider.get("test");
            Thread[] threads = new Thread[16];
            for (int i = 0; i < threads.length; i++) {
                String address = "shop " + i;
                threads[i] = new Thread(() -> {
                    for (int k = 0; k < 500; k++) {
                        request(tracer, address);
                    }
                });
                threads[i].start();
            }
            for (Thread thread : threads) {
                thread.join();
            }
            assertEquals(8000, processor.stats().published() + processor.stats().refused());
        }
    }

    /**
     * Objects referenced by a span can be collected after it has ended, while the processor is in
     * use.
     */
    @Test
    void endedSpan_canBeCollected() throws InterruptedException {
        SpanstatsSpanProcessor processor = processor();
        try (SdkTracerProvider provider = provider(processor)) {
            WeakReference<Object> span = ended(provider.get("test"));
            for (int i = 0; i < 100 && span.get() != null; i++) {
                System.gc();
                Thread.sleep(10);
            }
            assertNull(span.get());
        }
    }

    private static WeakReference<Object> ended(Tracer tracer) {
        Span span = tracer.spanBuilder("x").startSpan();
        span.setAttribute(ADDRESS, new String("only here"));
        span.end();
        return new WeakReference<>(span);
    }

    /** A processor like ours that does nothing, to measure the SDK's own cost. */
    private static final class Idle implements SpanProcessor {
        @Override
        public void onStart(Context parent, ReadWriteSpan span) {}

        @Override
        public boolean isStartRequired() {
            return false;
        }

        @Override
        public void onEnd(ReadableSpan span) {}

        @Override
        public boolean isEndRequired() {
            return true;
        }
    }

    /**
     * A published span allocates at most the object that the SDK creates for a caller that reads
     * its status.
     */
    @Test
    void publish_allocatesNothing() {
        long idle;
        long ours;
        try (SdkTracerProvider provider = provider(new Idle())) {
            idle = allocatedBySpans(provider.get("test"));
        }
        try (SdkTracerProvider provider = provider(processor())) {
            ours = allocatedBySpans(provider.get("test"));
        }
        System.out.println("a span allocates " + idle + " B, with us " + ours + " B");
        assertTrue(ours - idle <= 80, "a span allocates " + idle + " B, with us " + ours + " B");
    }

    /** Returns the bytes allocated per span, after initialization. */
    private static long allocatedBySpans(Tracer tracer) {
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        int spans = 20_000;
        long before = 0;
        for (int round = 0; round < 2; round++) {
            before = threads.getCurrentThreadAllocatedBytes();
            for (int i = 0; i < spans; i++) {
                request(tracer, "shop");
            }
        }
        return (threads.getCurrentThreadAllocatedBytes() - before) / spans;
    }
}
