package io.github.spanstatsd.opentelemetry;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.spanstatsd.client.Shown;
import io.opentelemetry.sdk.resources.Resource;
import java.util.Map;
import org.junit.jupiter.api.Test;

class OriginsTest {
    private static Resource resource(String... said) {
        var resource = Resource.builder();
        for (int i = 0; i < said.length; i += 2) {
            resource.put(said[i], said[i + 1]);
        }
        return resource.build();
    }

    @Test
    void origin_isFromResource() {
        Resource resource = resource(
                "service.name", "shop", "service.version", "1.4", "service.instance.id", "6ad3", "deployment.environment.name", "prod",
                "deployment.environment", "old", "host.name", "h", "container.id", "8f1d", "telemetry.sdk.language", "java",
                "telemetry.sdk.version", "1.52.0", "process.runtime.name", "OpenJDK", "process.runtime.version", "21", "os.type", "linux",
                "vcs.ref.head.revision", "abc");
        assertEquals(
                Map.ofEntries(
                        Map.entry("service", "shop"), Map.entry("version", "1.4"), Map.entry("runtime_id", "6ad3"), Map.entry("env", "prod"),
                        Map.entry("host", "h"), Map.entry("container_id", "8f1d"), Map.entry("lang", "java"),
                        Map.entry("tracer_version", "otlp-1.52.0"), Map.entry("lang_interpreter", "OpenJDK"),
                        Map.entry("lang_version", "21"), Map.entry("git_commit_sha", "abc")),
                Shown.origin(Origins.of(resource)));
    }

    @Test
    void origin_missingAttributesAreEmpty() {
        assertEquals(Map.of("service", "unknown_service", "tracer_version", "otlp-"), Shown.origin(Origins.of(Resource.empty())));
        assertEquals("old", Shown.origin(Origins.of(resource("deployment.environment", "old"))).get("env"));
        assertEquals("old", Shown.origin(Origins.of(resource("deployment.environment.name", "", "deployment.environment", "old"))).get("env"));
        assertEquals("7", Shown.origin(Origins.of(Resource.builder().put("service.version", 7).build())).get("version"));
        assertEquals("unknown_service", Origins.service(resource("service.name", "")));
    }
}
