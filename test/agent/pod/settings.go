package main

import (
	"fmt"
	"os"
	"strings"
)

// environment returns this process's environment without variables that configure a tracer or a daemon.
func environment() (env []string) {
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "DD_") && !strings.HasPrefix(variable, "OTEL_") &&
			!strings.HasPrefix(variable, "SPANSTATSD_") {
			env = append(env, variable)
		}
	}
	return env
}

// tracerSettings returns the settings of a Datadog tracer: the defaults, except for the counting of
// statistics, sampling, and features that are not measured.
func tracerSettings(agent string, computes bool) []string {
	return []string{
		"DD_TRACE_AGENT_URL=unix://" + agent, "DD_SERVICE=shop", "DD_ENV=pod", "DD_VERSION=1.2",
		fmt.Sprint("DD_TRACE_STATS_COMPUTATION_ENABLED=", computes),
		fmt.Sprintf(`DD_TRACE_SAMPLING_RULES=[{"sample_rate":%v}]`, kept), "DD_TRACE_RATE_LIMIT=100000",
		"DD_TRACE_STARTUP_LOGS=false", "DD_INSTRUMENTATION_TELEMETRY_ENABLED=false",
		"DD_REMOTE_CONFIGURATION_ENABLED=false",
		"DD_JMXFETCH_ENABLED=false", "DD_CRASHTRACKING_ENABLED=false",
	}
}

// otelSettings returns the settings of an OpenTelemetry SDK: the defaults, except for the endpoint,
// sampling, and features that are not measured. Spans counted before they reach the agent have the
// counted marker.
func otelSettings(p *pod, w variant) []string {
	resource := "deployment.environment.name=pod,service.version=1.2"
	if w.daemon != nil {
		resource += ",_dd.stats_computed=true"
	}
	env := []string{
		"OTEL_SERVICE_NAME=shop", "OTEL_RESOURCE_ATTRIBUTES=" + resource, "OTEL_METRICS_EXPORTER=none",
		"OTEL_LOGS_EXPORTER=none",
		"OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_EXPORTER_OTLP_ENDPOINT=http://" + p.otlp,
	}
	if w.samples {
		env = append(env, "OTEL_TRACES_SAMPLER=parentbased_traceidratio",
			fmt.Sprint("OTEL_TRACES_SAMPLER_ARG=", kept))
	}
	if w.computes {
		env = append(env, "SPANSTATSD_SOCKET="+p.spans())
	}
	return env
}

// keptByAgent returns the percentage of OpenTelemetry traces that the agent keeps: all if they are
// sampled before, or a share if the agent samples.
func (w variant) keptByAgent() string {
	if w.samples || w.daemon != nil {
		return "100"
	}
	return fmt.Sprint(100 * kept)
}
