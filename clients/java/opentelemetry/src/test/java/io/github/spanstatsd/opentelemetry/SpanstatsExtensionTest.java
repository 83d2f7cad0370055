package io.github.spanstatsd.opentelemetry;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.opentelemetry.sdk.autoconfigure.AutoConfiguredOpenTelemetrySdk;
import io.opentelemetry.sdk.autoconfigure.spi.internal.DefaultConfigProperties;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.zip.ZipFile;
import org.junit.jupiter.api.Test;

class SpanstatsExtensionTest {
    /** An SDK finds the extension by itself, and records every span. */
    @Test
    void autoconfiguredSdk_findsExtension() {
        Map<String, String> settings = Map.of(
                "otel.traces.exporter", "none", "otel.metrics.exporter", "none", "otel.logs.exporter", "none",
                "otel.traces.sampler", "traceidratio", "otel.traces.sampler.arg", "0.01");
        SdkTracerProvider provider = AutoConfiguredOpenTelemetrySdk.builder()
                .addPropertiesSupplier(() -> settings)
                .build()
                .getOpenTelemetrySdk()
                .getSdkTracerProvider();
        String shown = provider.toString();
        assertTrue(shown.contains("sampler=AlwaysRecord{TraceIdRatioBased{0.010000}}"), shown);
        assertTrue(shown.contains("SpanstatsSpanProcessor"), shown);
        provider.shutdown().join(1, TimeUnit.MINUTES);
    }

    /**
     * Main method of a separate virtual machine: prints the configured headers of a trace exporter.
     */
    public static void main(String[] arguments) {
        String[] headers = {null};
        AutoConfiguredOpenTelemetrySdk.builder()
                .addPropertiesSupplier(() -> Map.of(
                        "otel.traces.exporter", "none", "otel.metrics.exporter", "none", "otel.logs.exporter", "none",
                        "otel.exporter.otlp.headers", "a=b"))
                .addTracerProviderCustomizer((builder, config) -> {
                    headers[0] = config.getString("otel.exporter.otlp.traces.headers");
                    return builder;
                })
                .disableShutdownHook()
                .build()
                .getOpenTelemetrySdk()
                .close();
        System.out.print(headers[0]);
    }

    private static String headers(String option) throws Exception {
        Path java = Path.of(System.getProperty("java.home"), "bin", "java");
        Process process = new ProcessBuilder(java.toString(), "-Xshare:auto", option, "-cp", System.getProperty("java.class.path"),
                SpanstatsExtensionTest.class.getName()).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        assertTrue(process.waitFor(5, TimeUnit.MINUTES), "the virtual machine has not ended");
        assertEquals(0, process.exitValue());
        return new String(process.getInputStream().readAllBytes());
    }

    /**
     * If there is no memory for the client's buffers, nothing is counted, and nothing is marked as
     * counted.
     */
    @Test
    void withoutClient_nothingIsMarked() throws Exception {
        assertEquals("a=b,Datadog-Client-Computed-Stats=yes", headers("-Dsome=thing"));
        assertEquals("null", headers("-XX:MaxDirectMemorySize=1m"));
    }

    /** Exported traces are marked as counted, in addition to the configured headers. */
    @Test
    void exporter_marksSpans() {
        assertEquals("Datadog-Client-Computed-Stats=yes", marked(Map.of()));
        assertEquals("a=b,Datadog-Client-Computed-Stats=yes", marked(Map.of("otel.exporter.otlp.headers", "a=b")));
        assertEquals(
                "c=d,Datadog-Client-Computed-Stats=yes",
                marked(Map.of("otel.exporter.otlp.headers", "a=b", "otel.exporter.otlp.traces.headers", "c=d")));
    }

    private static String marked(Map<String, String> settings) {
        return SpanstatsExtension.mark(DefaultConfigProperties.createFromMap(settings)).get("otel.exporter.otlp.traces.headers");
    }

    /**
     * The jar for the Java agent contains all classes, each of them once, because the agent does
     * not support multi-release jars.
     */
    @Test
    void agentJar_containsAllClasses() throws Exception {
        try (ZipFile jar = new ZipFile(System.getProperty("spanstatsd.extension"))) {
            List<String> names = jar.stream().map(entry -> entry.getName()).filter(name -> name.endsWith(".class")).toList();
            assertEquals(names.size(), names.stream().distinct().count(), names.toString());
            assertTrue(names.stream().noneMatch(name -> name.startsWith("META-INF")), names.toString());
            assertTrue(names.stream().allMatch(name -> name.startsWith("io/github/spanstatsd/")), names.toString());
            byte[] socket = jar.getInputStream(jar.getEntry("io/github/spanstatsd/client/UnixSocket.class")).readAllBytes();
            assertEquals(60, socket[7], "the version of Java 16");
        }
    }
}
