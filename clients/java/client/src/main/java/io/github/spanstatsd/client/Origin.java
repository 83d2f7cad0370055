package io.github.spanstatsd.client;

import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The origin of published spans: host, environment, service, language and so on. It is sent once
 * per connection. Immutable.
 */
public final class Origin {
    /** The nonempty fields by their protocol names, in the order of the protocol's table. */
    private final Map<String, String> fields;

    private Origin(Map<String, String> fields) {
        this.fields = fields;
    }

    /** Returns the detected origin of this process; see {@link #detected}. */
    public static Origin detect() {
        return detected().build();
    }

    /**
     * Returns a builder with the detected properties of this process: the virtual machine, its
     * container, a unique runtime ID, and the values of {@code DD_SERVICE}, {@code DD_ENV}, {@code
     * DD_VERSION}, {@code DD_HOSTNAME}, {@code DD_EXTERNAL_ENV} and {@code DD_GIT_COMMIT_SHA}, or
     * otherwise of {@code OTEL_SERVICE_NAME} and {@code OTEL_RESOURCE_ATTRIBUTES}.
     */
    public static Builder detected() {
        return Detection.of(System.getenv());
    }

    public static Builder builder() {
        return new Builder();
    }

    Map<String, String> fields() {
        return fields;
    }

    /** Builds an {@link Origin}. Null and empty fields are not sent. */
    public static final class Builder {
        private static final String[] NAMES = {
            "host", "env", "version", "service", "lang", "lang_version", "lang_interpreter", "tracer_version",
            "runtime_id", "container_id", "entity_id", "external_env", "process_tags", "git_commit_sha",
            "obfuscation_version",
        };

        private final Map<String, String> fields = new LinkedHashMap<>();

        private Builder() {}

        /** Host name. If it is empty, the daemon sets its own default. */
        public Builder host(String value) {
            return set("host", value);
        }

        /** Environment. If it is empty, the daemon sets its own default. */
        public Builder env(String value) {
            return set("env", value);
        }

        /** Version of the traced service. */
        public Builder version(String value) {
            return set("version", value);
        }

        /** Name of the traced service. */
        public Builder service(String value) {
            return set("service", value);
        }

        /** Language, by the name that the tracer reports to the agent. */
        public Builder lang(String value) {
            return set("lang", value);
        }

        /** Version of the language. */
        public Builder langVersion(String value) {
            return set("lang_version", value);
        }

        /** Virtual machine. */
        public Builder langInterpreter(String value) {
            return set("lang_interpreter", value);
        }

        /** Version of the tracer. */
        public Builder tracerVersion(String value) {
            return set("tracer_version", value);
        }

        /** Unique to this process. */
        public Builder runtimeId(String value) {
            return set("runtime_id", value);
        }

        /** Value of the tracer's header {@code Datadog-Container-ID}. */
        public Builder containerId(String value) {
            return set("container_id", value);
        }

        /** Value of the tracer's header {@code Datadog-Entity-ID}. */
        public Builder entityId(String value) {
            return set("entity_id", value);
        }

        /** Value of the tracer's header {@code Datadog-External-Env}. */
        public Builder externalEnv(String value) {
            return set("external_env", value);
        }

        /** Tags of the process, comma-separated {@code key:value}. */
        public Builder processTags(String value) {
            return set("process_tags", value);
        }

        /** Commit of the traced service. */
        public Builder gitCommitSha(String value) {
            return set("git_commit_sha", value);
        }

        /** Obfuscation version. Set it only if the tracer obfuscated the resources itself. */
        public Builder obfuscationVersion(String value) {
            return set("obfuscation_version", value);
        }

        public Origin build() {
            Map<String, String> ordered = new LinkedHashMap<>();
            for (String name : NAMES) {
                String value = fields.get(name);
                if (value != null && !value.isEmpty()) {
                    ordered.put(name, value);
                }
            }
            return new Origin(ordered);
        }

        private Builder set(String name, String value) {
            fields.put(name, value);
            return this;
        }
    }
}
