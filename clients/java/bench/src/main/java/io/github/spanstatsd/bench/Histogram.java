package io.github.spanstatsd.bench;

import io.opentelemetry.api.metrics.DoubleHistogram;
import io.opentelemetry.sdk.common.CompletableResultCode;
import io.opentelemetry.sdk.metrics.Aggregation;
import io.opentelemetry.sdk.metrics.InstrumentSelector;
import io.opentelemetry.sdk.metrics.InstrumentType;
import io.opentelemetry.sdk.metrics.SdkMeterProvider;
import io.opentelemetry.sdk.metrics.View;
import io.opentelemetry.sdk.metrics.data.AggregationTemporality;
import io.opentelemetry.sdk.metrics.data.MetricData;
import io.opentelemetry.sdk.metrics.export.MetricExporter;
import io.opentelemetry.sdk.metrics.export.PeriodicMetricReader;
import java.time.Duration;
import java.util.Collection;

/**
 * OpenTelemetry's exponential histogram of durations, collected every ten seconds as deltas, like
 * the daemon's interval, by an exporter that discards them.
 */
final class Histogram implements AutoCloseable {
    /**
     * More than the number of keys. The SDK's default limit is 2,000 keys, and further ones are
     * counted as one.
     */
    private static final int MOST_KEYS = 8192;

    private final SdkMeterProvider provider;
    final DoubleHistogram durations;

    Histogram() {
        View exponential = View.builder().setAggregation(Aggregation.base2ExponentialBucketHistogram()).setCardinalityLimit(MOST_KEYS).build();
        provider = SdkMeterProvider.builder()
                .registerView(InstrumentSelector.builder().setName("*").build(), exponential)
                .registerMetricReader(PeriodicMetricReader.builder(new Nowhere()).setInterval(Duration.ofSeconds(10)).build())
                .build();
        durations = provider.get("bench").histogramBuilder("duration").setUnit("s").build();
    }

    @Override
    public void close() {
        provider.close();
    }

    private static final class Nowhere implements MetricExporter {
        @Override
        public AggregationTemporality getAggregationTemporality(InstrumentType type) {
            return AggregationTemporality.DELTA;
        }

        @Override
        public CompletableResultCode export(Collection<MetricData> metrics) {
            return CompletableResultCode.ofSuccess();
        }

        @Override
        public CompletableResultCode flush() {
            return CompletableResultCode.ofSuccess();
        }

        @Override
        public CompletableResultCode shutdown() {
            return CompletableResultCode.ofSuccess();
        }
    }
}
