package otlp

import (
	"fmt"
	"strings"
	"testing"
)

// TestCollectors_ReadFromSettings also checks that the error for an invalid URL does not contain the URL.
func TestCollectors_ReadFromSettings(t *testing.T) {
	for text, want := range map[string]string{
		"http://collector":          "tcp collector:4318 http://collector:4318/v1/traces",
		"http://collector:80/otlp/": "tcp collector:80 http://collector:80/otlp/v1/traces",
		"http://[::1]:4318":         "tcp [::1]:4318 http://[::1]:4318/v1/traces",
		"https://backend.example":   "tcp backend.example:443 https://backend.example:443/v1/traces",
		"grpc://collector": "tcp collector:4317 http://collector:4317" +
			signals[signalTraces].grpcPath,
		"grpcs://collector:4317/": "tcp collector:4317 https://collector:4317" +
			signals[signalTraces].grpcPath,
		"unix:///var/run/otel.sock":         "unix /var/run/otel.sock http://localhost/v1/traces",
		"collector:4318":                    "",
		"ftp://collector":                   "",
		"http://":                           "",
		"grpc://collector/base":             "",
		"http://user:secret@collector:4318": "",
		"http://collector:4318?key=secret":  "",
		"http://secret\x7f":                 "",
		"unix://host/path":                  "",
	} {
		d, err := ParseCollector(text)
		got := ""
		if err == nil {
			to := d.Upstream(0)
			got = fmt.Sprintf("%s %s %s", d.Network, d.Address, to.Base()+d.target(signalTraces))
		} else if !strings.HasPrefix(err.Error(), "parse otlp-forward: ") ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", text, err)
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
