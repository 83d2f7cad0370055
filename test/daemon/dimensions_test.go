package daemon_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/daemon"
	"github.com/spanstatsd/spanstatsd/internal/export/points"
	"github.com/spanstatsd/spanstatsd/internal/export/prometheus"
)

// TestDimensions_FloodKeepsRegularValues configures an attribute as a Prometheus label. After a
// high-cardinality burst, values that occur in each interval must have their own series, as must the
// routes, and no span may be lost.
func TestDimensions_FloodKeepsRegularValues(t *testing.T) {
	const tenants, routes, flood, rounds = 10, 5, 400, 6
	dimensions, err := points.ParseDimensions("all,tenant.id=40")
	if err != nil {
		t.Fatal(err)
	}
	var at string
	p := startPair(t, func(c *daemon.Config) {
		at = takesOTLP(c)
		c.OTLP.Labels.Attributes = []string{"tenant.id"}
		c.Aggregate.LimitTag("tenant.id", 40)
		c.Prometheus = prometheus.New(prometheus.Config{URL: prometheus.Path, Dimensions: dimensions})
	})
	rnd, sent := rand.New(rand.NewPCG(3, 4)), 0
	calls := func() (total float64, series map[string]bool) {
		resp, err := http.Get("http://" + p.HTTPAddr() + prometheus.Path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		series = map[string]bool{}
		for line := range strings.Lines(string(text)) {
			if labels, is := strings.CutPrefix(line, "traces_span_metrics_calls_total{"); is {
				var n float64
				_, _ = fmt.Sscan(labels[strings.LastIndex(labels, " "):], &n)
				total += n
				for label := range strings.SplitSeq(labels, ",") {
					series[strings.Trim(label, "{}")] = true
				}
			}
		}
		return total, series
	}
	for range rounds {
		var all []string
		add := func(tenant, route string) {
			now := time.Now().UnixNano()
			all = append(all, fmt.Sprintf(`{"traceId":"0102030405060708090a0b0c0d0e0f10","spanId":"%016x",`+
				`"name":%q,"startTimeUnixNano":"%d","endTimeUnixNano":"%d","attributes":[`+
				`{"key":"tenant.id","value":{"stringValue":%q}},{"key":"http.route","value":{"stringValue":%q}}]}`,
				rnd.Uint64()|1, "GET "+route, now-1000, now, tenant, route))
		}
		for i := range 2 * tenants * routes {
			add(fmt.Sprint("regular-", i%tenants), fmt.Sprint("/route-", i%routes))
		}
		for range flood {
			add(fmt.Sprintf("%x", rnd.Uint64()), "/flooded")
		}
		rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		sent += len(all)
		post(t, at, "/v1/traces", "application/json",
			[]byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[`+strings.Join(all, ",")+`]}]}]}`))
		time.Sleep(time.Second) // one interval
	}
	time.Sleep(2 * time.Second)
	total, series := calls()
	if total != float64(sent) {
		t.Errorf("%g calls of %d", total, sent)
	}
	for i := range tenants {
		if name := fmt.Sprintf(`tenant_id="regular-%d"`, i); !series[name] {
			t.Errorf("there is no series with %s", name)
		}
	}
	for i := range routes {
		if name := fmt.Sprintf(`http_route="/route-%d"`, i); !series[name] {
			t.Errorf("there is no series with %s", name)
		}
	}
	if !series[`tenant_id="tracer_blocked_value"`] {
		t.Error("nothing of the flood has collapsed")
	}
	p.stop()
}
