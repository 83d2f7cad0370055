package daemon_test

import (
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/daemon"
	"github.com/spanstatsd/spanstatsd/internal/export/agent"
	"github.com/spanstatsd/spanstatsd/internal/export/prometheus"
)

// Statistics are scraped at the HTTP address, or at a separate address that serves nothing
// else. A metric shows the time of the last scrape.
func TestScrape_OneAddress(t *testing.T) {
	for _, isSeparate := range []bool{false, true} {
		dir := t.TempDir()
		config := testConfig(t, dir, "unix://"+filepath.Join(dir, "absent"))
		config.Agent.URL = agent.URL{}
		config.Prometheus = prometheus.New(prometheus.Config{URL: prometheus.Path, Bounds: []float64{.1, 1}})
		separate := ""
		if isSeparate {
			separate = freeAddress(t)
			config.PrometheusAddr = separate
		}
		d, err := daemon.New(config)
		if err != nil {
			t.Fatal(err)
		}
		d.Start()
		at, spans := d.HTTPAddr(), d.HTTPAddr()
		if isSeparate {
			spans = separate
			for _, path := range []string{"/metrics", "/status", "/", "/livez"} {
				if got, _ := get(t, separate+path); got != http.StatusNotFound {
					t.Errorf("%s is answered %d at the address of statistics", path, got)
				}
			}
			if got, _ := get(t, at+prometheus.Path); got != http.StatusNotFound {
				t.Errorf("statistics are answered %d at the HTTP address as well", got)
			}
		}
		const gauge = "\nspanstatsd_prometheus_last_scrape_timestamp_seconds "
		if _, text := get(t, at+"/metrics"); !strings.Contains(text, gauge+"0\n") {
			t.Error("the metric has a time before the first scrape")
		}
		if s := d.Status().Destinations[0]; s.Name != "prometheus" || s.Scraped == nil ||
			!s.Scraped.Last.IsZero() {
			t.Errorf("before the first scrape: %+v", s)
		}
		if got, _ := get(t, spans+prometheus.Path); got != http.StatusOK {
			t.Errorf("a scrape is answered %d", got)
		}
		byName, err := http.NewRequest(http.MethodGet, "http://"+spans+prometheus.Path, nil)
		if err != nil {
			t.Fatal(err)
		}
		byName.Host = "spanstatsd.monitoring.svc:9126"
		if answer, err := http.DefaultClient.Do(byName); err != nil || answer.StatusCode != http.StatusOK {
			t.Errorf("a scrape by the name of a service is answered %+v, %v", answer, err)
		} else {
			answer.Body.Close()
		}
		if _, text := get(t, at+"/metrics"); strings.Contains(text, gauge+"0\n") ||
			!strings.Contains(text, gauge) {
			t.Error("the metric has no time after a scrape")
		}
		if s := d.Status().Destinations[0]; s.Scraped.Last.IsZero() {
			t.Errorf("after a scrape: %+v", s)
		}
		d.Stop()
	}
}

// freeAddress returns an address on which no server listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func get(t *testing.T, at string) (status int, body string) {
	t.Helper()
	answer, err := http.Get("http://" + at)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// If an address is in use, the daemon does not start, and the error names the flag.
func TestAddresses_InUseFailsStart(t *testing.T) {
	dir := t.TempDir()
	config := testConfig(t, dir, "unix://"+filepath.Join(dir, "absent"))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	config.Prometheus, config.PrometheusAddr = prometheus.New(prometheus.Config{}), l.Addr().String()
	if _, err := daemon.New(config); err == nil || !strings.Contains(err.Error(), "--prometheus-addr") {
		t.Errorf("%v", err)
	}
}
