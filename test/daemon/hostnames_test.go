package daemon_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/daemon"
	"github.com/spanstatsd/spanstatsd/internal/export/points"
	"github.com/spanstatsd/spanstatsd/internal/export/prometheus"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
)

// TestHostHeaders_CreateNoSeries checks that requests of one route with 1,001 different Host headers,
// which SDKs record as server.address, become a single Prometheus series. An operator can enable that
// label, within its budget.
func TestHostHeaders_CreateNoSeries(t *testing.T) {
	const hosts = 1001
	for _, named := range []string{"all", "all,server.address=40"} {
		dimensions, err := points.ParseDimensions(named)
		if err != nil {
			t.Fatal(err)
		}
		var at string
		p := startPair(t, func(c *daemon.Config) {
			at = takesOTLP(c)
			for name, budget := range dimensions.Named {
				c.OTLP.Labels.Attributes = append(c.OTLP.Labels.Attributes, name)
				c.Aggregate.LimitTag(name, budget)
			}
			c.Prometheus = prometheus.New(prometheus.Config{URL: prometheus.Path, Dimensions: dimensions})
		})
		var all []string
		for i := range hosts {
			now := time.Now().UnixNano()
			all = append(all, fmt.Sprintf(`{"traceId":"0102030405060708090a0b0c0d0e0f10","spanId":"%016x",`+
				`"name":"GET /","kind":2,"startTimeUnixNano":"%d","endTimeUnixNano":"%d","attributes":[`+
				`{"key":"http.route","value":{"stringValue":"/"}},`+
				`{"key":"server.address","value":{"stringValue":"host-%d.example"}}]}`, i+1, now-1000, now, i))
		}
		post(t, at, "/v1/traces", "application/json",
			[]byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[`+strings.Join(all, ",")+`]}]}]}`))
		total, series, addresses := 0, 0, 0
		scraped := func() bool {
			total, series, addresses = 0, 0, 0
			resp, err := http.Get("http://" + p.HTTPAddr() + prometheus.Path)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(text)) {
				if labels, is := strings.CutPrefix(line, "traces_span_metrics_calls_total{"); is {
					var n int
					_, _ = fmt.Sscan(labels[strings.LastIndex(labels, " "):], &n)
					total += n
					series++
					addresses += strings.Count(labels, "server_address=")
				}
			}
			return total == hosts
		}
		eventually.True(t, "every span is scraped", scraped)
		if named == "all" && (series != 1 || addresses != 0) {
			t.Errorf("%d series, %d with an address, want one without", series, addresses)
		}
		if named != "all" && (series < 10 || series > 41 || addresses != series) {
			t.Errorf("%d series, %d with an address, want a budget of 40", series, addresses)
		}
		p.stop()
	}
}
