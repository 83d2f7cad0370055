package agent

import (
	"strings"
	"testing"
)

func TestParseURL(t *testing.T) {
	for text, want := range map[string]URL{
		"http://127.0.0.1:8126":              {Network: "tcp", Address: "127.0.0.1:8126"},
		"http://agent/":                      {Network: "tcp", Address: "agent:8126"},
		"http://[::1]:80":                    {Network: "tcp", Address: "[::1]:80"},
		"http://[fe80::1]":                   {Network: "tcp", Address: "[fe80::1]:8126"},
		"unix:///var/run/datadog/apm.socket": {Network: "unix", Address: "/var/run/datadog/apm.socket"},
	} {
		got, err := ParseURL(text)
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v, want %+v", text, got, err, want)
		}
		if again, err := ParseURL(got.String()); err != nil || again != got {
			t.Errorf("%q reads back as %+v, %v", got, again, err)
		}
	}
	for _, text := range []string{
		"", "agent:8126", "127.0.0.1:8126", "https://agent:8126", "http://", "http://:8126",
		"http://agent:port",
		"http://agent:8126/path", "http://agent:8126?x=1", "http://user@agent:8126", "http://agent#f",
		"unix://", "unix:///", "unix://relative/path", "unix:relative", "unix:///" + strings.Repeat("x", 107),
		"/var/run/datadog/apm.socket", "http://%zz", URL{}.String(),
	} {
		if got, err := ParseURL(text); err == nil {
			t.Errorf("%q was accepted as %+v", text, got)
		} else if !strings.Contains(err.Error(), "use http://host:port or unix:///path/of/socket") {
			t.Errorf("%q: %v does not say what is accepted", text, err)
		}
	}
}
