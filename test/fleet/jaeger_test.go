package fleet

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// jaeger is a real Jaeger. Its monitor tab reads metrics from a Prometheus.
type jaeger struct {
	*process
	url string
}

func startJaeger(t *testing.T, p *prometheus) *jaeger {
	t.Helper()
	config, err := filepath.Abs("config/jaeger.yaml")
	if err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	j := &jaeger{url: "http://" + address}
	j.process = start(t, "jaeger", []string{
		"LISTEN=" + address, "LISTEN_GRPC=" + freeAddress(t), "LISTEN_OTLP=" + freeAddress(t),
		"PROMETHEUS_URL=" + p.url,
	}, program(t, "jaeger"), "--config", config)
	j.listens(address)
	return j
}

// servers is the default filter of the monitor tab, which can show other span kinds, too.
var servers = map[string][]string{"span_kind": {"SPAN_KIND_SERVER"}, "service_name": {"shop-0", "shop-1"}}

// TestJaeger_MonitorTab checks the responses to the API requests of Jaeger's UI for each service and
// operation. The UI interprets latencies as milliseconds.
func TestJaeger_MonitorTab(t *testing.T) {
	s := showTraffic(t, shownFlags(t, "Jaeger", 1)...)
	j := startJaeger(t, s.prometheus)
	for _, by := range [][]string{{"service_name"}, {"service_name", "span_name"}} {
		for _, a := range []ask{
			{Kind: "quantile", Quantile: .5},
			{Kind: "quantile", Quantile: .75},
			{Kind: "quantile", Quantile: .95},
			{Kind: "rate"},
			{Kind: "ratio"},
		} {
			a.Of, a.By, a.Where = "milliseconds", by, servers
			path, got := j.answer(&a, s)
			mustAgree(t, path, got, a.want(s.daemon, s.second))
		}
	}
}

// Without the flag for classic buckets there are rates but no latencies, so the documentation includes
// the flag.
func TestJaeger_LatenciesNeedClassicBuckets(t *testing.T) {
	flags := shownFlags(t, "Jaeger", 1)
	at := slices.Index(flags, "--otlp-histogram")
	if at < 0 {
		t.Fatalf("docs/dashboards.md has no --otlp-histogram: %q", flags)
	}
	s := showTraffic(t, slices.Delete(flags, at, at+2)...)
	j := startJaeger(t, s.prometheus)
	for kind, services := range map[string]int{"rate": 2, "quantile": 0} {
		a := &ask{Kind: kind, Quantile: .95, By: []string{"service_name"}, Where: servers}
		if path, got := j.answer(a, s); len(got) != services {
			t.Errorf("%s: %v, want %d services", path, got, services)
		}
	}
}

// The documented settings are the ones that this test uses.
func TestJaeger_DocumentedSettings(t *testing.T) {
	config, err := os.ReadFile("config/jaeger.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(sectionOf(t, "Jaeger"), "```yaml\n")
	block, _, _ = strings.Cut(block, "```")
	tested := strings.ReplaceAll(string(config), "${env:PROMETHEUS_URL:-http://127.0.0.1:9090}",
		"http://127.0.0.1:9090")
	for line := range strings.Lines(block) {
		if !strings.Contains(tested, line) {
			t.Errorf("config/jaeger.yaml does not have %q", line)
		}
	}
	if strings.Count(block, "\n") < 3 {
		t.Errorf("docs/dashboards.md shows %q of Jaeger", block)
	}
}

// answer sends the API request of the UI and returns the last value of each group.
func (j *jaeger) answer(a *ask, s *shown) (path string, values map[string]float64) {
	j.t.Helper()
	path = map[string]string{"quantile": "latencies", "rate": "calls", "ratio": "errors"}[a.Kind]
	question := url.Values{
		"service": a.Where["service_name"], "spanKind": {"server"}, "quantile": {fmt.Sprint(a.Quantile)},
		"groupByOperation": {fmt.Sprint(len(a.By) == 2)}, "endTs": {fmt.Sprint(s.at.UnixMilli())},
		"lookback": {"5000"}, "step": {"5000"}, "ratePer": {fmt.Sprint(1000 * s.window)},
	}
	path = "/api/metrics/" + path + "?" + question.Encode()
	response, err := http.Get(j.url + path)
	if err != nil {
		j.t.Fatal(err)
	}
	defer response.Body.Close()
	var answer struct {
		Metrics []struct {
			Labels       []struct{ Name, Value string }
			MetricPoints []struct{ GaugeValue struct{ DoubleValue any } } // "NaN" if there is none
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil ||
		response.StatusCode != http.StatusOK {
		j.t.Fatalf("Jaeger answers %s to %s: %v", response.Status, path, err)
	}
	values = map[string]float64{}
	for _, m := range answer.Metrics {
		labels := map[string]string{}
		for _, l := range m.Labels {
			labels[strings.Replace(l.Name, "operation", "span_name", 1)] = l.Value
		}
		values[group(labels,
			a.By)] = s.prometheus.number(m.MetricPoints[len(m.MetricPoints)-1].GaugeValue.DoubleValue)
	}
	return path, values
}
