package io.github.spanstatsd.opentelemetry;

import io.opentelemetry.sdk.common.CompletableResultCode;
import io.opentelemetry.sdk.resources.Resource;
import io.opentelemetry.sdk.trace.data.DelegatingSpanData;
import io.opentelemetry.sdk.trace.data.SpanData;
import io.opentelemetry.sdk.trace.export.SpanExporter;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;

/**
 * Exports spans with a resource attribute that marks them as counted. A Datadog agent reads it, and
 * Collectors forward it. Other signals' resources stay unchanged. Only exported spans have this
 * cost.
 */
final class MarkingExporter implements SpanExporter {
    /** The attribute that marks spans as counted. */
    static final String COMPUTED = "_dd.stats_computed";

    private final SpanExporter exporter;
    private Mark mark = new Mark(Resource.empty()); // the latest; any thread can write it, because it is immutable

    MarkingExporter(SpanExporter exporter) {
        this.exporter = exporter;
    }

    /** A resource, and its copy with the attribute. */
    private static final class Mark {
        final Resource original;
        final Resource marked;

        Mark(Resource original) {
            this.original = original;
            marked = original.toBuilder().put(COMPUTED, "true").build();
        }
    }

    /** A span with another resource. */
    private static final class Marked extends DelegatingSpanData {
        private final Resource resource;

        Marked(SpanData span, Resource resource) {
            super(span);
            this.resource = resource;
        }

        @Override
        public Resource getResource() {
            return resource;
        }
    }

    @Override
    public CompletableResultCode export(Collection<SpanData> spans) {
        List<SpanData> marked = new ArrayList<>(spans.size());
        Mark last = mark; // all spans share one resource object, because exporters group spans by it
        for (SpanData span : spans) {
            if (span.getResource() != last.original) {
                mark = last = new Mark(span.getResource());
            }
            marked.add(new Marked(span, last.marked));
        }
        return exporter.export(marked);
    }

    @Override
    public CompletableResultCode flush() {
        return exporter.flush();
    }

    @Override
    public CompletableResultCode shutdown() {
        return exporter.shutdown();
    }

    @Override
    public String toString() {
        return "Marking{" + exporter + "}";
    }
}
