package agent

import "testing"

func TestFromEnvironment(t *testing.T) {
	for _, test := range []struct{ url, host, port, want, variables string }{
		{"", "", "", "", ""},
		{"", "agent.local", "", "http://agent.local:8126", "DD_AGENT_HOST"},
		{"", "", "9000", "http://127.0.0.1:9000", "DD_TRACE_AGENT_PORT"},
		{"", "::1", "9000", "http://[::1]:9000", "DD_AGENT_HOST, DD_TRACE_AGENT_PORT"},
		{"", "[::1]", "", "http://[::1]:8126", "DD_AGENT_HOST"},
		{"unix:///run/apm.socket", "agent.local", "9000", "unix:///run/apm.socket", "DD_TRACE_AGENT_URL"},
	} {
		environment := map[string]string{
			"DD_TRACE_AGENT_URL": test.url, "DD_AGENT_HOST": test.host, "DD_TRACE_AGENT_PORT": test.port,
		}
		got, variables := FromEnvironment(func(name string) string { return environment[name] })
		if got != test.want || variables != test.variables {
			t.Errorf("%+v: %s from %s", test, got, variables)
		}
	}
}
