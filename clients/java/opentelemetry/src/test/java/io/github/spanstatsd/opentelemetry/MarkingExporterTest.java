package io.github.spanstatsd.opentelemetry;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.sdk.common.CompletableResultCode;
import io.opentelemetry.sdk.resources.Resource;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import io.opentelemetry.sdk.trace.data.SpanData;
import io.opentelemetry.sdk.trace.export.BatchSpanProcessor;
import io.opentelemetry.sdk.trace.export.SimpleSpanProcessor;
import io.opentelemetry.sdk.trace.export.SpanExporter;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class MarkingExporterTest {
    private static final Resource RESOURCE = Resource.builder().put("service.name", "shop").build();

    /** Records the exported spans. */
    private static final class Kept implements SpanExporter {
        private final List<SpanData> spans = new ArrayList<>();
        private boolean isShut;

        @Override
        public synchronized CompletableResultCode export(Collection<SpanData> all) {
            spans.addAll(all);
            return CompletableResultCode.ofSuccess();
        }

        @Override
        public CompletableResultCode flush() {
            return CompletableResultCode.ofSuccess();
        }

        @Override
        public CompletableResultCode shutdown() {
            isShut = true;
            return CompletableResultCode.ofSuccess();
        }
    }

    @Test
    void exportedSpans_areMarkedAsCounted() {
        Kept kept = new Kept();
        SdkTracerProvider provider = SdkTracerProvider.builder()
                .setResource(RESOURCE)
                .addSpanProcessor(BatchSpanProcessor.builder(new MarkingExporter(kept)).build())
                .build();
        for (int i = 0; i < 3; i++) {
            provider.get("test").spanBuilder("span " + i).startSpan().setAttribute("i", i).end();
        }
        assertTrue(provider.shutdown().join(1, TimeUnit.MINUTES).isSuccess());
        assertTrue(kept.isShut);
        assertEquals(3, kept.spans.size());
        Resource marked = RESOURCE.toBuilder().put(MarkingExporter.COMPUTED, "true").build();
        for (int i = 0; i < 3; i++) {
            SpanData span = kept.spans.get(i);
            assertEquals(marked, span.getResource());
            assertSame(kept.spans.get(0).getResource(), span.getResource(), "exporters group spans by the object");
            assertEquals("span " + i, span.getName());
            assertEquals(i, span.getAttributes().get(AttributeKey.longKey("i")));
        }
    }

    /** The cached resource does not replace another one. */
    @Test
    void resource_isMarkedAsItself() {
        Kept kept = new Kept();
        MarkingExporter exporter = new MarkingExporter(kept);
        String[] services = {"a", "a", "b", "a", "b", "b"};
        Resource[] resources = {Resource.builder().put("service.name", "a").build(), Resource.builder().put("service.name", "b").build()};
        for (int i = 0; i < services.length; i += 2) {
            List<SpanData> spans = new ArrayList<>();
            for (int j = i; j < i + 2; j++) spans.add(in(resources[services[j].equals("a") ? 0 : 1]));
            exporter.export(spans);
        }
        assertEquals(services.length, kept.spans.size());
        for (int i = 0; i < services.length; i++) {
            assertEquals(Resource.builder().put("service.name", services[i]).put(MarkingExporter.COMPUTED, "true").build(),
                    kept.spans.get(i).getResource());
        }
        assertSame(kept.spans.get(4).getResource(), kept.spans.get(5).getResource());
    }

    private static SpanData in(Resource resource) {
        Kept kept = new Kept();
        SdkTracerProvider provider = SdkTracerProvider.builder().setResource(resource).addSpanProcessor(SimpleSpanProcessor.create(kept)).build();
        provider.get("test").spanBuilder("span").startSpan().end();
        return kept.spans.get(0);
    }
}
