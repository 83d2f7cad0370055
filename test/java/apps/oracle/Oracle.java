package oracle;

import io.opentelemetry.exporter.otlp.http.trace.OtlpHttpSpanExporter;
import io.opentelemetry.sdk.autoconfigure.spi.AutoConfigurationCustomizer;
import io.opentelemetry.sdk.autoconfigure.spi.AutoConfigurationCustomizerProvider;
import io.opentelemetry.sdk.trace.export.BatchSpanProcessor;
import java.time.Duration;

/**
 * A second extension for the Java agent. It exports all recorded spans, sampled or not, to
 * ORACLE_ENDPOINT with the SDK's own exporter, so that an oracle can count the same spans.
 */
public class Oracle implements AutoConfigurationCustomizerProvider {
  @Override
  public void customize(AutoConfigurationCustomizer customizer) {
    customizer.addTracerProviderCustomizer(
        (provider, config) ->
            provider.addSpanProcessor(
                BatchSpanProcessor.builder(
                        OtlpHttpSpanExporter.builder().setEndpoint(System.getenv("ORACLE_ENDPOINT")).setTimeout(Duration.ofMinutes(2)).build())
                    .setExportUnsampledSpans(true)
                    .setExporterTimeout(Duration.ofMinutes(2))
                    .setScheduleDelay(Duration.ofMillis(200))
                    .setMaxQueueSize(1 << 15)
                    .build()));
  }
}
