package io.github.spanstatsd.opentelemetry;

import io.github.spanstatsd.client.Config;
import io.opentelemetry.sdk.autoconfigure.spi.AutoConfigurationCustomizer;
import io.opentelemetry.sdk.autoconfigure.spi.AutoConfigurationCustomizerProvider;
import io.opentelemetry.sdk.autoconfigure.spi.ConfigProperties;
import io.opentelemetry.sdk.resources.Resource;
import io.opentelemetry.sdk.trace.SdkTracerProviderBuilder;
import io.opentelemetry.sdk.trace.samplers.Sampler;
import java.util.HashMap;
import java.util.Map;
import java.util.logging.Level;
import java.util.logging.Logger;

/**
 * What OpenTelemetry's Java agent finds in the jar, and an SDK that configures itself on its class
 * path: it wraps the sampler that was configured, adds the processor, and has exporters of traces
 * mark what they send as counted, or a Datadog agent or a spanstatsd behind would count the sampled
 * spans again: OTLP by a header, and all by an attribute of the resource.
 *
 * <p>It goes after all other customizers, so that it wraps what they make. Where it can't work, as
 * before Java 16, it says so in one line and leaves all as it is.
 */
public final class SpanstatsExtension implements AutoConfigurationCustomizerProvider {
    private static final Logger LOG = Logger.getLogger(SpanstatsExtension.class.getName());
    private static final String NOT_COUNTED = "spanstatsd: spans are not counted: {0}";
    private static final String MARK = "Datadog-Client-Computed-Stats=yes";
    private static final String HEADERS = "otel.exporter.otlp.headers";
    private static final String TRACES_HEADERS = "otel.exporter.otlp.traces.headers";

    private Resource resource = Resource.empty();
    private SpanstatsSpanProcessor processor; // null where it can't work: then nothing is marked

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

    /** Finds out before anything is marked as counted. */
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

    /** Takes all that counting needs, a thread too, before anything is marked as counted. */
    private boolean open(ConfigProperties config) {
        if (config.getBoolean("otel.sdk.disabled", false)) {
            return false;
        }
        try {
            processor = SpanstatsSpanProcessor.open(Config.builder());
        } catch (RuntimeException | LinkageError | OutOfMemoryError e) { // the last where memory off the heap is short
            LOG.log(Level.WARNING, NOT_COUNTED, e.toString());
        }
        return processor != null;
    }

    /** The header of what was counted already, behind those that are configured. */
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
