package io.github.spanstatsd.opentelemetry;

import io.opentelemetry.api.incubator.config.DeclarativeConfigProperties;
import io.opentelemetry.sdk.autoconfigure.spi.internal.ComponentProvider;
import io.opentelemetry.sdk.trace.SpanProcessor;

/**
 * Makes the processor available in OpenTelemetry's declarative configuration (a YAML file), as the
 * span processor {@code spanstatsd}. The file also needs the sampler {@code always_record}, so that
 * unsampled spans are counted.
 */
public final class SpanstatsComponentProvider implements ComponentProvider {
    @Override
    public Class<?> getType() {
        return SpanProcessor.class;
    }

    @Override
    public String getName() {
        return "spanstatsd";
    }

    @Override
    public Object create(DeclarativeConfigProperties config) {
        return SpanstatsExtension.processorOrNone();
    }
}
