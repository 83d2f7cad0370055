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
        Map<String, String> attributes = attributes(resource);
        String environment = attributes.getOrDefault("deployment.environment.name", "");
        return Origin.builder()
                .service(service(resource))
                .env(environment.isEmpty() ? attributes.get("deployment.environment") : environment)
                .version(attributes.get("service.version"))
                .host(attributes.get("host.name"))
                .containerId(attributes.get("container.id"))
                .runtimeId(attributes.get("service.instance.id"))
                .lang(attributes.get("telemetry.sdk.language"))
                .langVersion(attributes.get("process.runtime.version"))
                .langInterpreter(attributes.get("process.runtime.name"))
                .tracerVersion(VERSION + attributes.getOrDefault("telemetry.sdk.version", ""))
                .gitCommitSha(attributes.get("vcs.ref.head.revision"))
                .build();
    }

    static String service(Resource resource) {
        String service = attributes(resource).getOrDefault("service.name", "");
        return service.isEmpty() ? UNKNOWN_SERVICE : service;
    }

    /** Returns the attributes as text, by name. */
    private static Map<String, String> attributes(Resource resource) {
        Map<String, String> attributes = new HashMap<>();
        resource.getAttributes().forEach((AttributeKey<?> key, Object value) -> attributes.putIfAbsent(key.getKey(), SpanValues.textOf(value)));
        return attributes;
    }
}
