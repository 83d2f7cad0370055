package main

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/status"
)

// TestOTLPEndpoint: the endpoint is set by a flag or by OpenTelemetry's variables. config shows it
// without secrets.
func TestOTLPEndpoint(t *testing.T) {
	const general, metrics = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"
	for _, c := range []struct {
		args, variables []string
		value, origin   string
		variable        string
	}{
		{nil, nil, "", status.FromDefault, ""},
		{
			[]string{"--otlp-metrics-endpoint=http://h:4318"},
			nil, "http://h:4318/v1/metrics", status.FromFlag,
			"",
		},
		{
			[]string{"--otlp-metrics-endpoint=https://h/x?key=hunter2"},
			nil, "https://h/x", status.FromFlag,
			"",
		},
		{
			nil,
			[]string{general + "=http://h:4318"},
			"http://h:4318/v1/metrics", status.FromEnvironment,
			general,
		},
		{
			nil,
			[]string{general + "=http://h:4318", metrics + "=http://m/"},
			"http://m/",
			status.FromEnvironment, metrics,
		},
		{
			nil,
			[]string{"SPANSTATSD_OTLP_METRICS_ENDPOINT=unix:///s"},
			"unix:///s", status.FromEnvironment,
			"SPANSTATSD_OTLP_METRICS_ENDPOINT",
		},
		{
			[]string{"--otlp-metrics-endpoint=off"},
			[]string{general + "=http://h:4318"},
			"off",
			status.FromFlag, "",
		},
	} {
		cmd := program(t, append([]string{"config", "--json"}, c.args...)...)
		cmd.Env = append(append(cmd.Env, c.variables...), "OTEL_EXPORTER_OTLP_HEADERS=api-key=hunter2")
		out, err := cmd.CombinedOutput()
		var settings []status.Setting
		if err != nil || json.Unmarshal(out, &settings) != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if strings.Contains(string(out), "hunter2") {
			t.Errorf("%v %v: a secret is shown", c.args, c.variables)
		}
		for _, s := range settings {
			if s.Name == "otlp-metrics-endpoint" &&
				(s.Value != c.value || s.Origin != c.origin || s.Variable != c.variable) {
				t.Errorf("%v %v: %+v", c.args, c.variables, s)
			}
		}
	}
}

// TestOTLPTemporality: the flag takes precedence, otherwise it is that of OpenTelemetry's variable, otherwise delta.
// config shows it.
func TestOTLPTemporality(t *testing.T) {
	const preference = "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE"
	endpoint := "--otlp-metrics-endpoint=http://h:4318"
	for _, c := range []struct {
		args      []string
		variables []string
		value     string
		origin    string
		variable  string
	}{
		{[]string{endpoint}, nil, "delta", status.FromDefault, ""},
		{[]string{endpoint, "--otlp-temporality=cumulative"}, nil, "cumulative", status.FromFlag, ""},
		{
			[]string{endpoint},
			[]string{preference + "=Cumulative"},
			"cumulative", status.FromEnvironment,
			preference,
		},
		{
			[]string{endpoint},
			[]string{preference + "=lowmemory"},
			"delta", status.FromEnvironment,
			preference,
		},
		{
			[]string{endpoint, "--otlp-temporality=delta"},
			[]string{preference + "=cumulative"},
			"delta",
			status.FromFlag, "",
		},
	} {
		cmd := program(t, append([]string{"config", "--json"}, c.args...)...)
		cmd.Env = append(cmd.Env, c.variables...)
		out, err := cmd.CombinedOutput()
		var settings []status.Setting
		if err != nil || json.Unmarshal(out, &settings) != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for _, s := range settings {
			if s.Name == "otlp-temporality" &&
				(s.Value != c.value || s.Origin != c.origin || s.Variable != c.variable) {
				t.Errorf("%v %v: %+v", c.args, c.variables, s)
			}
		}
	}
}

// TestCumulative_DefaultsFitMemory: with cumulative temporality, the default of
// --max-aggregates is smaller.
func TestCumulative_DefaultsFitMemory(t *testing.T) {
	aggregates := map[string]int{}
	for _, temporality := range []string{"delta", "cumulative"} {
		cmd := program(t, "config", "--json", "--drainers=fixed:1", "--otlp-metrics-endpoint=http://h:4318",
			"--agent-url=http://h", "--otlp-temporality="+temporality)
		cmd.Env = append(cmd.Env, "GOMEMLIMIT=64MiB")
		out, err := cmd.CombinedOutput()
		var settings []status.Setting
		if err != nil || json.Unmarshal(out, &settings) != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for _, s := range settings {
			if s.Name == "max-aggregates" {
				aggregates[temporality], _ = strconv.Atoi(s.Value)
			}
		}
	}
	if aggregates["cumulative"] < 1024 || aggregates["cumulative"] >= aggregates["delta"] {
		t.Errorf("%v", aggregates)
	}
	cmd := program(t, "config", "--check", "--drainers=fixed:1", "--otlp-metrics-endpoint=http://h:4318",
		"--otlp-temporality=cumulative", "--max-aggregates=1000000")
	cmd.Env = append(cmd.Env, "GOMEMLIMIT=2GiB")
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "running totals") {
		t.Errorf("%v: %s", err, out)
	}
}

// TestOTLPExporter_InvalidSettings: invalid flags and variables of the OTLP exporter are errors.
func TestOTLPExporter_InvalidSettings(t *testing.T) {
	const endpoint = "--otlp-metrics-endpoint=http://h:4318"
	for _, c := range []struct {
		args, variables []string
		says            string
	}{
		{[]string{"--otlp-metrics-endpoint=ftp://user:hunter2@h"}, nil, "parse OTLP endpoint"},
		{[]string{endpoint, "--otlp-dialect=klingon"}, nil, "klingon"},
		{[]string{endpoint, "--otlp-dimensions=a b"}, nil, `"a b"`},
		{[]string{endpoint, "--otlp-temporality=lowmemory"}, nil, `"lowmemory"`},
		{
			[]string{endpoint},
			[]string{"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE=both"},
			"TEMPORALITY_PREFERENCE",
		},
		{[]string{endpoint, "--otlp-dialect=datadog", "--otlp-dimensions=none"}, nil, "otlp-dimensions"},
		{[]string{endpoint, "--otlp-dialect=datadog", "--otlp-instance-id=x"}, nil, "otlp-instance-id"},
		{[]string{endpoint, "--otlp-dialect=conventions", "--otlp-histogram=explicit-ms"}, nil, "explicit-ms is of"},
		{
			[]string{endpoint, "--otlp-dialect=conventions", "--otlp-addr=127.0.0.1:4318", "--otlp-semantics=datadog"},
			nil, "--otlp-semantics otel",
		},
		{
			[]string{"--prometheus", "--prometheus-dialect=conventions", "--otlp-addr=127.0.0.1:4318", "--otlp-semantics=datadog"},
			nil, "--otlp-semantics otel",
		},
		{[]string{endpoint}, []string{"OTEL_EXPORTER_OTLP_HEADERS=hunter2"}, "OTEL_EXPORTER_OTLP_HEADERS"},
		{[]string{endpoint}, []string{"OTEL_EXPORTER_OTLP_CERTIFICATE=/none"}, "/none"},
		{[]string{"--agent-url=off", "--prometheus=off"}, nil, "agent-url"},
		{[]string{"--agent-url=off", endpoint, "--apm-socket=/s"}, nil, "agent-url"},
	} {
		cmd := program(t, append([]string{"config", "--check"}, c.args...)...)
		cmd.Env = append(cmd.Env, c.variables...)
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), c.says) || strings.Contains(string(out), "hunter2") {
			t.Errorf("%v %v: %v, %s", c.args, c.variables, err, out)
		}
	}
	if out, err := program(t, "config", "--check", "--agent-url=off", endpoint).CombinedOutput(); err != nil {
		t.Errorf("OTLP alone: %v, %s", err, out)
	}
}

func TestInstance_RandomUUID(t *testing.T) {
	uuid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	if a, b := newInstance(), newInstance(); !uuid.MatchString(a) || a == b {
		t.Errorf("instances %s and %s", a, b)
	}
}

// Variables for SDKs that use gRPC, which are common to all containers of a pod, do not stop the
// daemon. A warning reports that it does not export OTLP metrics.
func TestOTLPVariables_GRPCIsIgnored(t *testing.T) {
	for _, c := range []struct{ args, effective, warning string }{
		{"", "agent-url", "OTEL_EXPORTER_OTLP_ENDPOINT is ignored because OTEL_EXPORTER_OTLP_PROTOCOL is grpc"},
		{"--otlp-metrics-endpoint=http://c:4318", "http://c:4318/v1/metrics", ""},
	} {
		cmd := program(t, append([]string{"config"}, strings.Fields(c.args)...)...)
		cmd.Env = append(cmd.Env, "OTEL_EXPORTER_OTLP_ENDPOINT=http://c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL=grpc")
		var log strings.Builder
		cmd.Stderr = &log
		out, err := cmd.Output()
		if err != nil || !strings.Contains(string(out), c.effective) || strings.Contains(string(out), ":4317") {
			t.Errorf("%s: %v: %s", c.args, err, out)
		}
		if got := log.String(); strings.Count(got, "\n") != min(1, len(c.warning)) || !strings.Contains(got, c.warning) {
			t.Errorf("%s: the log is %q", c.args, got)
		}
	}
}
