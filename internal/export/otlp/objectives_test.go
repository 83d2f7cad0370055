package otlp

import (
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/points"
	"github.com/spanstatsd/spanstatsd/internal/export/totals"
	"github.com/spanstatsd/spanstatsd/internal/span/slo"
)

// Counters of objectives are cumulative in either temporality and dialect. They are sent in the first request of a cycle,
// also if it has no spans.
func TestObjectives_AreCumulative(t *testing.T) {
	for _, c := range []Config{
		{Instance: "i-1"},
		{Instance: "i-1", Temporality: Cumulative},
		{Instance: "i-1", Dialect: points.Datadog},
		{Instance: "i-1", Bounds: []float64{1}, Millis: true},
	} {
		c.Objectives = []string{"checkout", "pay"}
		e := newEncoder(&c, roomForAll)
		for i, want := range []uint64{0, 5, 10} {
			cycle := newCycle()
			if i > 0 {
				cycle.Add(0, cycle.Key(cycle.Origin(testOrigin), testKey("op")), time.Second, 1, 0, 1)
			}
			sealed := cycle.Seal()
			if i > 0 {
				sealed.Objectives = slo.Counts{{Events: 5, Good: 3}, {}}
			}
			requests, _ := encodeWith(e, sealed, export.DefaultMaxPayloadBytes)
			if len(requests) != 1 {
				t.Fatalf("%d requests", len(requests))
			}
			r := mustRead(t, requests[0].body)[0]
			events, good := r.Metrics[points.ObjectiveEvents], r.Metrics[points.ObjectiveGoodEvents]
			if events.Temporality != cumulative || !events.Monotonic || len(events.Points) != 2 || len(good.Points) != 2 {
				t.Fatalf("%+v", r.Metrics)
			}
			first := events.Points[0]
			if *first.Calls != want || *good.Points[0].Calls != want/5*3 || *events.Points[1].Calls != 0 {
				t.Errorf("cycle %d: %d events, %d good, and %d of the other objective", i, *first.Calls, *good.Points[0].Calls,
					*events.Points[1].Calls)
			}
			if first.Attributes["slo"] != "checkout" || r.Attributes["service.instance.id"] != "i-1" || first.Start >= first.End {
				t.Errorf("%+v", first)
			}
		}
	}
}

// Without objectives, requests have no metrics of them, and a cycle without spans has no request.
func TestObjectives_NoneWithoutFlag(t *testing.T) {
	e := newEncoder(&Config{}, totals.Limits{})
	if requests, _ := encodeWith(e, newCycle().Seal(), export.DefaultMaxPayloadBytes); len(requests) != 0 {
		t.Errorf("%d requests", len(requests))
	}
}
