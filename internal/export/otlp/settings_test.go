package otlp

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/check/endpoint"
)

func TestEndpoint_ReadAndShown(t *testing.T) {
	for text, want := range map[string]string{
		"http://host:4318":                     "http://host:4318/v1/metrics",
		"http://host:4318/":                    "http://host:4318/",
		"https://host/otlp/v1/metrics":         "https://host/otlp/v1/metrics",
		"https://host/v1/metrics?api-key=text": "https://host/v1/metrics",
		"http://[::1]:4318/x":                  "http://[::1]:4318/x",
		"unix:///run/otlp.sock":                "unix:///run/otlp.sock",
	} {
		e, err := ParseEndpoint(text)
		if err != nil || e.String() != want || e.IsZero() {
			t.Errorf("%s: %s, %v, want %s", text, e, err, want)
		}
	}
	for _, text := range []string{
		"", "host:4318", "grpc://host", "http://", "http://host:0/", "http://host:99999", "http://host#x",
		"http://u:p@host",
		"unix://run/x", "unix:relative", "unix:///", "unix:///" + strings.Repeat("x", 108), "unix:///x?y",
		"http://a\x00b",
	} {
		if e, err := ParseEndpoint(text); err == nil {
			t.Errorf("%q was parsed as %s", text, e)
		}
	}
	if shown := (endpoint.URL{}).String(); shown != "off" || !(endpoint.URL{}).IsZero() {
		t.Errorf("none is shown as %q", shown)
	}
}

func TestEndpoint_ErrorsHideSecrets(t *testing.T) {
	for _, text := range []string{
		"http://user:hunter2@host/", "ftp://host/?key=hunter2",
		"http://user:hunter2@host:x/%zz",
	} {
		if _, err := ParseEndpoint(text); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// variables returns a getenv for an environment.
func variables(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestEndpoint_PathFollowsSpecification(t *testing.T) {
	const general, metrics = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"
	for _, test := range []struct{ variable, text, want string }{
		{general, "http://host:4318", "http://host:4318/v1/metrics"},
		{general, "http://host:4318/", "http://host:4318/v1/metrics"},
		{general, "https://host/mysignals", "https://host/mysignals/v1/metrics"},
		{general, "https://host/mysignals/", "https://host/mysignals/v1/metrics"},
		{general, "unix:///run/otlp.sock", "/v1/metrics"},
		{metrics, "http://host:4318/v1/metrics", "http://host:4318/v1/metrics"},
		{metrics, "http://host:4318", "http://host:4318/"},
		{metrics, "http://host:4318/v2", "http://host:4318/v2"},
		{metrics, "unix:///run/otlp.sock", "/v1/metrics"},
	} {
		v, err := ReadVariables(variables(test.variable, test.text))
		got := v.Endpoint.String()
		if v.Endpoint.Network == "unix" {
			got = v.Endpoint.Path()
		}
		if err != nil || got != test.want || v.From != test.variable {
			t.Errorf("%s=%s: %s of %s, %v, want %s", test.variable, test.text, got, v.From, err, test.want)
		}
	}
}

func TestSettings_MetricsVariablesTakePrecedence(t *testing.T) {
	v, err := ReadVariables(variables(
		"OTEL_EXPORTER_OTLP_ENDPOINT", "http://general", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
		"http://metrics/x",
		"OTEL_EXPORTER_OTLP_HEADERS", "a=1", "OTEL_EXPORTER_OTLP_METRICS_HEADERS", "b=2",
		"OTEL_EXPORTER_OTLP_TIMEOUT", "1", "OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", " 2500 ",
		"OTEL_EXPORTER_OTLP_COMPRESSION", "none", "OTEL_EXPORTER_OTLP_METRICS_COMPRESSION", "gzip",
		"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "http/protobuf",
		"OTEL_EXPORTER_OTLP_CERTIFICATE", "ca", "OTEL_EXPORTER_OTLP_METRICS_CERTIFICATE", "mca",
		"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "cert", "OTEL_EXPORTER_OTLP_METRICS_CLIENT_KEY", "mkey",
	))
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprintln(v.Endpoint, v.Headers, v.Timeout, v.Compress, v.Certificate, v.ClientCert,
		v.ClientKey)
	if want := fmt.Sprintln("http://metrics/x", "B=(hidden)", 2500*time.Millisecond, true, "mca", "cert",
		"mkey"); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestSettings_UnusableVariablesAreNamed(t *testing.T) {
	for variable, value := range map[string]string{
		"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT":    "ftp://x",
		"OTEL_EXPORTER_OTLP_HEADERS":             "nothing",
		"OTEL_EXPORTER_OTLP_TIMEOUT":             "0",
		"OTEL_EXPORTER_OTLP_METRICS_TIMEOUT":     "60001",
		"OTEL_EXPORTER_OTLP_COMPRESSION":         "zstd",
		"OTEL_EXPORTER_OTLP_METRICS_COMPRESSION": "GZIP",
	} {
		_, err := ReadVariables(variables("OTEL_EXPORTER_OTLP_ENDPOINT", "http://host", variable, value))
		if err == nil || !strings.Contains(err.Error(), variable) {
			t.Errorf("%s=%s: %v", variable, value, err)
		}
	}
	// With another protocol, the variables are meant for the SDKs in the pod.
	for _, variable := range []string{"OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL"} {
		v, err := ReadVariables(variables("OTEL_EXPORTER_OTLP_ENDPOINT", "http://host:4317", variable, "grpc"))
		if err != nil || v.From != "" || !v.Endpoint.IsZero() ||
			v.Ignored != "OTEL_EXPORTER_OTLP_ENDPOINT is ignored because "+variable+" is grpc" {
			t.Errorf("%s=grpc: %+v, %v", variable, v, err)
		}
	}
	if _, err := ReadVariables(variables("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")); err != nil {
		t.Error(err)
	}
	if v, err := ReadVariables(variables()); err != nil || !v.Endpoint.IsZero() || v.Timeout != 0 ||
		v.Compress {
		t.Errorf("nothing is %+v, %v", v, err)
	}
}

func TestHeaders_FollowSpecification(t *testing.T) {
	h, err := parseHeaders(" api-key = value%3D%2C , ,x-scope= a b ")
	if err != nil {
		t.Fatal(err)
	}
	if h.all.Get("Api-Key") != "value=," || h.all.Get("X-Scope") != "a b" || len(h.all) != 2 {
		t.Errorf("headers %v", h.all)
	}
	for _, text := range []string{
		"novalue", "=x", "a b=c", "a=%zz", "a=%0Ab", "a=%7f", "Content-Type=x",
		"expect=x", "a:b=c",
	} {
		if _, err := parseHeaders(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

// Headers are secret: no formatting of the settings and no error contains them.
func TestHeaders_AreSecret(t *testing.T) {
	h, err := parseHeaders("authorization=Bearer%20hunter2")
	if err != nil {
		t.Fatal(err)
	}
	v := Variables{Headers: h}
	asJSON, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	for _, shown := range []string{
		fmt.Sprint(h), fmt.Sprintf("%v %+v %#v %s", v, v, v, h),
		fmt.Sprintf("%+v", Config{Variables: v}), string(asJSON),
	} {
		if strings.Contains(shown, "hunter2") {
			t.Errorf("shown as %s", shown)
		}
	}
	for _, text := range []string{"a=hunter2%0A", "bad name=hunter2", "content-type=hunter2", "hunter2"} {
		if _, err := parseHeaders(text); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
