package program

import (
	"io"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/spanstatsd/spanstatsd/client"
)

// TestMetrics_PassPromtool checks the metrics of a daemon that has counted spans with the linter of `promtool
// check metrics`.
func TestMetrics_PassPromtool(t *testing.T) {
	address := daemonWithSpans(t)
	for _, path := range []string{"/metrics", "/metrics/spans"} {
		_, text := scrape(t, address+path, "text/plain")
		problems, err := promlint.New(strings.NewReader(text)).Lint()
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for _, problem := range problems {
			t.Errorf("%s: %s: %s", path, problem.Metric, problem.Text)
		}
	}
}

// TestMetrics_OpenMetrics checks that a Prometheus that asks for OpenMetrics gets it, with the same series as in
// the text format.
func TestMetrics_OpenMetrics(t *testing.T) {
	url := daemonWithSpans(t) + "/metrics"
	_, text := scrape(t, url, "text/plain;version=0.0.4")
	contentType, openMetrics := scrape(t, url, "application/openmetrics-text;version=1.0.0,text/plain;q=0.5")
	if !strings.HasPrefix(contentType, "application/openmetrics-text") || !strings.HasSuffix(openMetrics, "# EOF\n") {
		t.Errorf("the response has type %q and ends with %q", contentType, openMetrics[max(0, len(openMetrics)-40):])
	}
	inText, inOpenMetrics := seriesOf(text), seriesOf(openMetrics)
	if len(inText) < 100 || !maps.Equal(inText, inOpenMetrics) {
		maps.DeleteFunc(inText, func(series string, _ bool) bool { return inOpenMetrics[series] })
		t.Errorf("%d series are in OpenMetrics; only the text has %q", len(inOpenMetrics),
			slices.Sorted(maps.Keys(inText)))
	}
}

// daemonWithSpans returns the URL of a daemon that has counted a span.
func daemonWithSpans(t *testing.T) string {
	t.Helper()
	dir := sockets(t)
	agent := startAgent(t, "unix", filepath.Join(dir, "agent"))
	socket := filepath.Join(dir, "s")
	_, first := daemonWithLog(t, agent.URL(), socket, "--prometheus", "--flush-interval", "1s",
		"--otlp-addr", "127.0.0.1:0", "--zipkin-addr", "127.0.0.1:0", "--apm-addr", "127.0.0.1:0")
	c, err := client.Open(client.Config{Socket: socket, Origin: client.Origin{Service: "shop"}})
	if err != nil {
		t.Fatal(err)
	}
	c.Publish([]client.Snapshot{{
		Key:      client.Key{Service: "shop", Operation: "http.server.request", Resource: "GET /"},
		Duration: time.Millisecond, End: time.Now(),
	}})
	if err := c.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	return "http://" + first["http"].(string)
}

// scrape returns the content type and the body of a response.
func scrape(t *testing.T, url, accept string) (contentType, body string) {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", accept)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	all, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: status %d, %v", url, response.StatusCode, err)
	}
	return response.Header.Get("Content-Type"), string(all)
}

// seriesOf returns the names and labels of all samples of an exposition.
func seriesOf(exposition string) map[string]bool {
	all := map[string]bool{}
	for line := range strings.Lines(exposition) {
		if end := strings.LastIndexByte(line, ' '); end > 0 && line[0] != '#' {
			// OpenMetrics writes whole numbers in labels as floats.
			all[strings.ReplaceAll(line[:end], `.0"`, `"`)] = true
		}
	}
	return all
}
