package prometheus

import (
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/span/slo"
)

// The series of objectives exist before the first cycle, in every format, and add up the counts of all cycles.
func TestObjectives_ExistFromTheStart(t *testing.T) {
	x := exporterWith(t, func(c *Config) { c.Objectives = []string{"checkout", "pay.v2"} })
	check := func(metric, objective string, want float64) {
		t.Helper()
		body, _ := ask(t, x, "text/plain", "")
		for name, all := range map[string]float64{
			"protobuf": seriesOf(t, scraped(t, x)[metric])["slo="+objective].GetCounter().GetValue(),
			"text":     seriesOf(t, readText(t, body)[metric])["slo="+objective].GetCounter().GetValue(),
		} {
			if all != want {
				t.Errorf("%s{slo=%s} is %v in %s, want %v", metric, objective, all, name, want)
			}
		}
	}
	if len(scraped(t, x)) != 2 {
		t.Errorf("%d metrics before the first cycle", len(scraped(t, x)))
	}
	check("traces_slo_events_total", "checkout", 0)
	for range 2 {
		sealed := newCycle(t).Seal()
		sealed.Objectives = slo.Counts{{Events: 5, Good: 3}, {}}
		publish(x, sealed)
	}
	check("traces_slo_events_total", "checkout", 10)
	check("traces_slo_good_events_total", "checkout", 6)
	check("traces_slo_events_total", "pay.v2", 0)
	created := scraped(t, x)["traces_slo_events_total"].GetMetric()[0].GetCounter().GetCreatedTimestamp().AsTime()
	if created.UnixNano() != x.objectives.start {
		t.Errorf("created at %v", created)
	}
}

func TestObjectives_NoneWithoutFlag(t *testing.T) {
	x := exporterWith(t, nil)
	publish(x, newCycle(t).Seal())
	for name := range scraped(t, x) {
		t.Errorf("%s without an objective", name)
	}
}
