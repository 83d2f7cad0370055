package deploy

import (
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/prometheus/promql/parser"
)

// requestMetrics lists the series of /metrics/spans in the dialect spanmetrics: the histogram as a
// native one, or as classic buckets.
var requestMetrics = []string{
	"traces_span_metrics_calls_total", "traces_span_metrics_duration_seconds",
	"traces_span_metrics_duration_seconds_bucket", "traces_span_metrics_duration_seconds_sum",
	"traces_span_metrics_duration_seconds_count",
}

// objectiveMetrics lists the series of objectives at /metrics/spans, and those that the rules of spanstatsd slo rules record.
var objectiveMetrics = []string{
	"traces_slo_events_total", "traces_slo_good_events_total",
	"slo:sli_error:ratio_rate5m", "slo:sli_error:ratio_rate1h", "slo:sli_error:ratio_rate6h", "slo:sli_error:ratio_rate3d",
	"slo:objective:ratio", "slo:error_budget:ratio", "slo:period_error_budget_remaining:ratio",
}

// metricNames returns the series of a scraped daemon: those in docs/metrics.md, which a test of the
// daemon compares with the registry; those of Go and of the process; and the one that Prometheus adds.
func metricNames(t *testing.T) map[string]bool {
	t.Helper()
	// metrics of other programs
	names := map[string]bool{"up": true, "apiserver_mutating_admission_policy_check_total": true}
	for _, name := range append(objectiveMetrics, requestMetrics...) {
		names[name] = true
	}
	document := string(readFile(t, "../../docs/metrics.md"))
	rows := regexp.MustCompile("(?m)^\\| `(spanstatsd_[a-z_]+)` \\|(.*)$")
	for _, row := range rows.FindAllStringSubmatch(document, -1) {
		names[row[1]] = true
		if strings.Contains(row[2], "a histogram") {
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				names[row[1]+suffix] = true
			}
		}
	}
	if len(names) < 30 {
		t.Fatalf("docs/metrics.md lists %d metrics: the test cannot parse its tables", len(names))
	}
	standard := prometheus.NewRegistry()
	standard.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	families, err := standard.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		names[family.GetName()] = true
	}
	return names
}

// checkQuery checks that a query selects metrics and that each of them exists.
func checkQuery(t *testing.T, where, query string, known map[string]bool) {
	t.Helper()
	if checkExpression(t, where, query, known) == 0 {
		t.Errorf("%s: %s selects no metric", where, query)
	}
}

// checkExpression parses an expression with Prometheus's parser, checks each series that it selects,
// and returns their number.
func checkExpression(t *testing.T, where, query string, known map[string]bool) (selectors int) {
	t.Helper()
	expr, err := promParser.ParseExpr(query)
	if err != nil {
		t.Errorf("%s: %v in %s", where, err, query)
		return 1
	}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			selectors++
			if !known[selector.Name] {
				t.Errorf("%s: there is no metric %q", where, selector.Name)
			}
		}
		return nil
	})
	return selectors
}
