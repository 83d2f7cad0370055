package daemon_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/daemon"
	"github.com/spanstatsd/spanstatsd/internal/export/points"
	"github.com/spanstatsd/spanstatsd/internal/export/prometheus"
)

// The requests of TestSpanNames_OneSeriesForUnknownPaths to unknown paths, as the issue tracker has them.
const unknownPaths = 142

// TestSpanNames_OneSeriesForUnknownPaths sends the spans of a Flask application that a crawler visits, and one of a
// Go server, whose route is in its name only. Prometheus scrapes one series for the unknown paths, and the route.
// With names as sent it scrapes one series per path.
func TestSpanNames_OneSeriesForUnknownPaths(t *testing.T) {
	const goServer = `{service_name="orders",span_name="GET /orders/{number}",span_kind="SPAN_KIND_SERVER",` +
		`http_request_method="GET",http_route="/orders/{number}",`
	for keeps, want := range map[bool]struct {
		series, renamed int
		route           bool
	}{false: {1, unknownPaths, true}, true: {unknownPaths, 0, false}} {
		t.Run(fmt.Sprint("as sent ", keeps), func(t *testing.T) {
			t.Parallel()
			var at string
			p := startPair(t, func(c *daemon.Config) {
				at = takesOTLP(c)
				c.OTLP.Labels.KeepNames = keeps
				dimensions, err := points.ParseDimensions(points.AllDimensions)
				if err != nil {
					t.Fatal(err)
				}
				c.Prometheus = prometheus.New(prometheus.Config{URL: prometheus.Path, Dimensions: dimensions})
			})
			metrics := "http://" + p.HTTPAddr() + "/metrics"
			if text := scrape(t, metrics); !strings.Contains(text, "\nspanstatsd_spans_renamed_total 0\n") {
				t.Error("the counter of renamed spans is not at 0 from the start")
			}
			var flask []string
			for i := range unknownPaths {
				path := fmt.Sprint("/nowhere/", i)
				flask = append(flask, serverSpan("GET "+path, "http.method", "GET", "http.target", path, "http.status_code", "404"))
			}
			body := fmt.Sprintf(`{"resourceSpans":[%s,%s]}`, resourceSpans("shop", "python", flask...),
				resourceSpans("orders", "go", serverSpan("GET /orders/{number}", "http.request.method", "GET", "url.path", "/orders/7")))
			for range 2 { // the second one is a retry
				post(t, at, "/v1/traces", "application/json", []byte(body))
			}
			var calls []string
			for deadline := time.Now().Add(20 * time.Second); len(calls) == 0 && time.Now().Before(deadline); {
				time.Sleep(100 * time.Millisecond)
				for line := range strings.Lines(scrape(t, "http://"+p.HTTPAddr()+prometheus.Path)) {
					if strings.HasPrefix(line, "traces_span_metrics_calls_total{") {
						calls = append(calls, line)
					}
				}
			}
			all := strings.Join(calls, "")
			if got := strings.Count(all, `service_name="shop"`); got != want.series {
				t.Errorf("%d series of the shop, want %d:\n%s", got, want.series, all)
			}
			if !keeps && !strings.Contains(all, `span_name="GET",`) {
				t.Errorf("no series has the method as its name:\n%s", all)
			}
			if strings.Contains(all, goServer) != want.route {
				t.Errorf("the route of the Go server is a label: %t, want %t\n%s", !want.route, want.route, all)
			}
			if text := scrape(t, metrics); !strings.Contains(text, fmt.Sprintf("\nspanstatsd_spans_renamed_total %d\n", want.renamed)) {
				t.Errorf("the metric of renamed spans is not %d", want.renamed)
			}
			p.stop()
		})
	}
}

// serverSpan returns the span of an HTTP server in JSON, with attributes from alternating names and values.
func serverSpan(name string, attributes ...string) string {
	var all []string
	for i := 0; i < len(attributes); i += 2 {
		all = append(all, fmt.Sprintf(`{"key":%q,"value":{"stringValue":%q}}`, attributes[i], attributes[i+1]))
	}
	now := time.Now().UnixNano()
	return fmt.Sprintf(`{"traceId":"0102030405060708090a0b0c0d0e0f10","spanId":"0102030405060708","name":%q,"kind":2,`+
		`"startTimeUnixNano":"%d","endTimeUnixNano":"%d","attributes":[%s]}`, name, now-1000, now, strings.Join(all, ","))
}

// resourceSpans returns the spans of a service in JSON.
func resourceSpans(service, language string, spans ...string) string {
	return fmt.Sprintf(`{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":%q}},`+
		`{"key":"telemetry.sdk.language","value":{"stringValue":%q}}]},"scopeSpans":[{"spans":[%s]}]}`,
		service, language, strings.Join(spans, ","))
}
