package io.github.spanstatsd.opentelemetry;

import io.github.spanstatsd.client.Origin;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.sdk.resources.Resource;
import java.util.HashMap;
import java.util.Map;

/**
 * Derives the origin from a resource, as the daemon does for OTLP (internal/rules/otel/origin.go).
 */
final class Origins {
    /** OpenTelemetry's name of a service without a name. */
    private static final String UNKNOWN_SERVICE = "unknown_service";

    /** Prefix of the tracer version for OpenTelemetry SDKs. */
    private static final String VERSION = "otlp-";

    private Origins() {}

    static Origin of(Resource resource) {
        Map<String, String> said = said(resource);
        String environment = said.getOrDefault("deployment.environment.name", "");
        return Origin.builder()
                .service(service(resource))
                .env(environment.isEmpty() ? said.get("deployment.environment") : environment)
                .version(said.get("service.version"))
                .host(said.get("host.name"))
                .containerId(said.get("container.id"))
                .runtimeId(said.get("service.instance.id"))
                .lang(said.get("telemetry.sdk.language"))
                .langVersion(said.get("process.runtime.version"))
                .langInterpreter(said.get("process.runtime.name"))
                .tracerVersion(VERSION + said.getOrDefault("telemetry.sdk.version", ""))
                .gitCommitSha(said.get("vcs.ref.head.revision"))
                .build();
    }

    static String service(Resource resource) {
        String service = said(resource).getOrDefault("service.name", "");
        return service.isEmpty() ? UNKNOWN_SERVICE : service;
    }

    /** Returns the attributes as text, by name. */
    private static Map<String, String> said(Resource resource) {
        Map<String, String> said = new HashMap<>();
        resource.getAttributes().forEach((AttributeKey<?> key, Object value) -> said.putIfAbsent(key.getKey(), SpanValues.textOf(value)));
        return said;
    }
}
