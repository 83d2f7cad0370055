package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/status"
)

// TestAgentDiscovery: without an agent URL, the agent is auto-discovered, unless another
// destination is configured or the agent is off. If traces are forwarded to the agent, it is not
// auto-discovered.
func TestAgentDiscovery(t *testing.T) {
	const here, otlp = "http://127.0.0.1:8126", "--otlp-metrics-endpoint=http://c"
	for _, c := range []struct{ flags, value, effective string }{
		{"", here, "looked for"},
		{"--agent-url=" + here, here, ""},
		{"DD_AGENT_HOST=h", "http://h:8126", ""},
		{"DD_TRACE_AGENT_PORT=9", "http://127.0.0.1:9", ""},
		{"DD_TRACE_AGENT_URL=unix:///s", "unix:///s", ""},
		{"SPANSTATSD_AGENT_URL=" + here, here, ""},
		{"--apm-socket=/s", here, ""},
		{"--apm-addr=127.0.0.1:8127 " + otlp, here, ""},
		{otlp, "off", ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c", "off", ""},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c --otlp-metrics-endpoint=off", here, "looked for"},
		{otlp + " DD_AGENT_HOST=h", "http://h:8126", ""},
		{otlp + " --agent-url=off", "off", ""},
		{otlp + " DD_TRACE_AGENT_URL=off", "off", ""},
	} {
		cmd := program(t, "config", "--json")
		for text := range strings.FieldsSeq(c.flags) {
			if strings.HasPrefix(text, "-") {
				cmd.Args = append(cmd.Args, text)
			} else {
				cmd.Env = append(cmd.Env, text)
			}
		}
		out, err := cmd.CombinedOutput()
		var settings []status.Setting
		if err != nil || json.Unmarshal(out, &settings) != nil {
			t.Fatalf("%q: %v: %s", c.flags, err, out)
		}
		at := slices.IndexFunc(settings, func(s status.Setting) bool { return s.Name == "agent-url" })
		if s := settings[at]; s.Value != c.value || s.Effective != c.effective {
			t.Errorf("%q: %+v, want %+v", c.flags, s, c)
		}
	}
}

// TestAgentDiscovery_AddressStaysAvailable: a receiver may listen on the agent's default
// address if the agent is only auto-discovered.
func TestAgentDiscovery_AddressStaysAvailable(t *testing.T) {
	if out, err := program(t, "config", "--check",
		"--otlp-addr=127.0.0.1:8126").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
