package io.github.spanstatsd.opentelemetry;

import io.github.spanstatsd.client.Config;
import io.opentelemetry.sdk.autoconfigure.spi.AutoConfigurationCustomizer;
import io.opentelemetry.sdk.autoconfigure.spi.AutoConfigurationCustomizerProvider;
import io.opentelemetry.sdk.autoconfigure.spi.ConfigProperties;
import io.opentelemetry.sdk.resources.Resource;
import io.opentelemetry.sdk.trace.SdkTracerProviderBuilder;
import io.opentelemetry.sdk.trace.SpanProcessor;
import io.opentelemetry.sdk.trace.samplers.Sampler;
import java.util.HashMap;
import java.util.Map;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * Extension that OpenTelemetry's Java agent finds in the jar, and an autoconfigured SDK on its
 * class path. It wraps the configured sampler, adds the processor, and makes trace exporters mark
 * spans as counted, because otherwise a Datadog agent or a spanstatsd downstream would count the
 * sampled spans again: OTLP exporters by a header, and all exporters by a resource attribute.
 *
 * <p>It runs after all other customizers, so that it wraps their results. If it is not usable, such
 * as before Java 16, it logs one line and changes nothing.
 */
public final class SpanstatsExtension implements AutoConfigurationCustomizerProvider {
    private static final Logger LOG = Logger.getLogger(SpanstatsExtension.class.getName());
    private static final String NOT_COUNTED = "spanstatsd: spans are not counted: {0}";
    private static final String MARK = "Datadog-Client-Computed-Stats=yes";
    private static final String HEADERS = "otel.exporter.otlp.headers";
    private static final String TRACES_HEADERS = "otel.exporter.otlp.traces.headers";

    private Resource resource = Resource.empty();
    private SpanstatsSpanProcessor processor; // null if it is not usable: then nothing is marked

    @Override
    public void customize(AutoConfigurationCustomizer customizer) {
        if (!canWork()) {
            return;
        }
        customizer
                .addPropertiesCustomizer(config -> open(config) ? mark(config) : Map.of())
                .addResourceCustomizer((all, config) -> resource = all)
                .addSpanExporterCustomizer((exporter, config) -> processor != null ? new MarkingExporter(exporter) : exporter)
                .addSamplerCustomizer((sampler, config) -> wrap(sampler))
                .addTracerProviderCustomizer((builder, config) -> add(builder));
    }

    @Override
    public int order() {
        return Integer.MAX_VALUE;
    }

    /** Checks Unix socket support before anything is marked as counted. */
    private static boolean canWork() {
        if (Runtime.version().feature() < 16) {
            LOG.log(Level.WARNING, NOT_COUNTED, "it needs Java 16 or later, which has Unix sockets");
            return false;
        }
        try {
            Config.builder().build();
            return true;
        } catch (IllegalArgumentException e) {
            LOG.log(Level.WARNING, NOT_COUNTED, e.getMessage());
            return false;
        }
    }

    private Sampler wrap(Sampler sampler) {
        return processor != null ? AlwaysRecordSampler.of(sampler) : sampler;
    }

    private SdkTracerProviderBuilder add(SdkTracerProviderBuilder builder) {
        return processor != null ? builder.addSpanProcessor(processor.begin(resource)) : builder;
    }

    /**
     * Allocates everything that counting needs, including a thread, before anything is marked as
     * counted.
     */
    private boolean open(ConfigProperties config) {
        if (config.getBoolean("otel.sdk.disabled", false)) {
            return false;
        }
        processor = openProcessor();
        return processor != null;
    }

    /** Returns a processor that has no origin yet, or logs why it can't work and returns null. */
    private static SpanstatsSpanProcessor openProcessor() {
        try {
            return SpanstatsSpanProcessor.open(Config.builder());
        } catch (RuntimeException | LinkageError | OutOfMemoryError e) { // also thrown without memory off the heap
            LOG.log(Level.WARNING, NOT_COUNTED, e.toString());
            return null;
        }
    }

    /**
     * Returns a processor that takes its origin from the first span, or logs why it can't work and
     * returns one that does nothing.
     */
    static SpanProcessor processorOrNone() {
        SpanProcessor opened = canWork() ? openProcessor() : null;
        return opened != null ? opened : SpanProcessor.composite();
    }

    /** Returns the configured headers, and the header that marks traces as counted. */
    static Map<String, String> mark(ConfigProperties config) {
        String headers = config.getString(TRACES_HEADERS);
        if (headers == null) {
            headers = config.getString(HEADERS);
        }
        Map<String, String> marked = new HashMap<>();
        marked.put(TRACES_HEADERS, headers == null || headers.isEmpty() ? MARK : headers + "," + MARK);
        return marked;
    }
}
