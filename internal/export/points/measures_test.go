package points_test

import (
	"strings"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/export/points"
	"github.com/spanstatsd/spanstatsd/internal/span/measure"
)

// TestCheckMeasures_NamesForPrometheus checks that no two metrics have the same name in Prometheus, because their values
// would be added up there.
func TestCheckMeasures_NamesForPrometheus(t *testing.T) {
	for flags, want := range map[string]string{
		"order.value=a order_value=b":         "order.value and order_value have the same name in Prometheus, order_value",
		"wait=a,s wait.seconds=b":             "wait and wait.seconds have the same name in Prometheus, wait_seconds",
		"traces.span.metrics.duration=a,s":    "the name traces.span.metrics.duration is reserved",
		"traces_slo_events=a":                 "the name traces_slo_events is reserved",
		"gen_ai http.body messaging.batch":    "",
		"wait=a,s wait_ms=b,ms trace.depth=c": "",
	} {
		measures, err := measure.Parse(flags)
		if err != nil {
			t.Fatal(err)
		}
		err = points.CheckMeasures(measures)
		isAsExpected := err == nil && want == "" || err != nil && want != "" && strings.Contains(err.Error(), want)
		if !isAsExpected {
			t.Errorf("%s: %v, want %q", flags, err, want)
		}
	}
}
