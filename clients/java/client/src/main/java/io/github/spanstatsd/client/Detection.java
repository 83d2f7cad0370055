package io.github.spanstatsd.client;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Detects properties of the process for its {@link Origin}. */
final class Detection {
    /** A container ID at the end of a cgroup path: 64 hex digits, an ECS task's ID, or a UUID. */
    private static final String CONTAINER = "([0-9a-f]{8}(?:-[0-9a-f]{4}){4}|[0-9a-f]{64}|[0-9a-f]{32}-\\d+)(?:\\.scope)?$";
    /**
     * A container ID in a line of mountinfo, in the path of a file that a runtime mounts into each
     * container.
     */
    private static final String MOUNT = "/([0-9a-f]{64})/(?:[^ ]*/)?(?:resolv\\.conf|hostname|hosts) ";

    private Detection() {}

    static Origin.Builder of(Map<String, String> env) {
        Map<String, String> attributes = attributes(env.get("OTEL_RESOURCE_ATTRIBUTES"));
        String container = containerId(Paths.get("/proc/self"));
        return Origin.builder()
                .host(first(env.get("DD_HOSTNAME"), attributes.get("host.name")))
                .env(first(env.get("DD_ENV"), attributes.get("deployment.environment.name"), attributes.get("deployment.environment")))
                .version(first(env.get("DD_VERSION"), attributes.get("service.version")))
                .service(first(env.get("DD_SERVICE"), env.get("OTEL_SERVICE_NAME"), attributes.get("service.name")))
                .lang("java")
                .langVersion(System.getProperty("java.version"))
                .langInterpreter(System.getProperty("java.vm.name"))
                .runtimeId(UUID.randomUUID().toString())
                .containerId(container)
                .entityId(container.isEmpty() ? "" : "ci-" + container)
                .externalEnv(env.get("DD_EXTERNAL_ENV"))
                .gitCommitSha(env.get("DD_GIT_COMMIT_SHA"));
    }

    private static String first(String... values) {
        for (String value : values) {
            if (value != null && !value.isEmpty()) {
                return value;
            }
        }
        return "";
    }

    /** Parses the list {@code key=value,key=value} of OTEL_RESOURCE_ATTRIBUTES. */
    static Map<String, String> attributes(String list) {
        Map<String, String> attributes = new HashMap<>();
        for (String pair : list == null ? new String[0] : list.split(",")) {
            int equals = pair.indexOf('=');
            if (equals > 0) {
                attributes.put(pair.substring(0, equals).trim(), pair.substring(equals + 1).trim());
            }
        }
        return attributes;
    }

    /** Returns the container ID from a directory of /proc, or "". */
    static String containerId(Path process) {
        String id = first(CONTAINER, process.resolve("cgroup"));
        return id.isEmpty() ? first(MOUNT, process.resolve("mountinfo")) : id;
    }

    /**
     * Returns the group of a pattern in the first matching line, or "". The pattern is compiled for
     * each call, because there are few.
     */
    private static String first(String pattern, Path file) {
        Matcher found = Pattern.compile(pattern).matcher("");
        for (String line : lines(file)) {
            if (found.reset(line).find()) {
                return found.group(1);
            }
        }
        return "";
    }

    private static String[] lines(Path file) {
        try {
            return new String(Files.readAllBytes(file), StandardCharsets.ISO_8859_1).split("\n");
        } catch (IOException | SecurityException e) {
            return new String[0];
        }
    }
}
