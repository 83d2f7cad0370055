package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/status"
)

// TestPrometheus_OnWithoutDestination: Prometheus is on if no other destination is
// configured, unless --prometheus is set.
func TestPrometheus_OnWithoutDestination(t *testing.T) {
	const otlp = "--otlp-metrics-endpoint=http://c"
	for _, c := range []struct{ flags, value, effective string }{
		{"", "", "on"},
		{"--agent-url=off", "", "on"},
		{"--agent-url=http://h:8126", "", "off"},
		{"DD_AGENT_HOST=h", "", "off"},
		{otlp, "", "off"},
		{otlp + " --agent-url=off", "", "off"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c", "", "off"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c --otlp-metrics-endpoint=off", "", "on"},
		{otlp + " --prometheus", "on", ""},
		{"--prometheus=false", "off", ""},
		{"SPANSTATSD_PROMETHEUS=true " + otlp, "on", ""},
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
		at := slices.IndexFunc(settings, func(s status.Setting) bool { return s.Name == "prometheus" })
		if s := settings[at]; s.Value != c.value || s.Effective != c.effective {
			t.Errorf("%q: %+v, want %+v", c.flags, s, c)
		}
	}
}

// TestPrometheus_InvalidFlags: invalid flags of the Prometheus exporter are errors before
// anything starts.
func TestPrometheus_InvalidFlags(t *testing.T) {
	for flags, want := range map[string]string{
		"--prometheus=maybe": "not one of on, off", "--prometheus-buckets=1,x": "not a number of seconds",
		"--prometheus-buckets=2,1": "increasing", "--prometheus-dimensions=a=b": "parse dimensions",
		"--prometheus-addr=nowhere": "check prometheus-addr", "--prometheus-dialect=datadog": "not one of",
		"--prometheus-addr=:9126": "check prometheus-addr", "--prometheus-histograms=some": "not one of",
		"--agent-url=off --prometheus=off": "no other destination",
	} {
		out, err := program(t,
			append([]string{"config", "--check"}, strings.Fields(flags)...)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%q: %v: %s, want %q", flags, err, out, want)
		}
	}
	for _, fine := range []string{
		"--prometheus-buckets=sdk", "--prometheus-buckets=0.1, 1,2.5",
		"--prometheus-addr=127.0.0.1:9127",
	} {
		if out, err := program(t, "config", "--check", fine).CombinedOutput(); err != nil {
			t.Errorf("%q: %v: %s", fine, err, out)
		}
	}
}
