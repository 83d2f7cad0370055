package otlp

import (
	"reflect"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/export/points"
	"github.com/spanstatsd/spanstatsd/internal/registry"
	"github.com/spanstatsd/spanstatsd/internal/span"
)

// A tag with the name of an outcome attribute does not merge the points of successful and failed
// spans.
func TestTags_NamedLikeOutcomeAttributes(t *testing.T) {
	for _, d := range []points.Config{withAll(), asDatadog} {
		c := newCycle()
		key := c.Key(c.Origin(span.Origin{Service: "web"}), span.Key{
			Service: "web", Operation: "op", Resource: "r",
			AdditionalTags: []string{
				"status.code:x", "datadog.span.top_level:y", "service.name:z",
				"span.name:n", "untagged",
			},
		})
		c.Add(0, key, 0, 1, 0, 1)
		c.Add(0, key, 0, 1, span.Error, 1)
		metric := points.NewReader(d).Metrics()[0].Durations
		points := mustRead(t, encodeAll(t, d, c))[0].points(t, metric, "status.code")
		if len(points) != 2 || points["x "].Count != nil {
			t.Errorf("%s: points %v", d.Dialect, points)
		}
		for _, p := range points {
			if p.Attributes["service.name"] != "web" || p.Attributes["span.name"] == "n" {
				t.Errorf("%s: a tag replaced an attribute: %v", d.Dialect, p.Attributes)
			}
		}
	}
}

// Spans with the status OK of OpenTelemetry have a series that is separate from spans with an
// unset status.
func TestSeries_StatusOKIsSeparate(t *testing.T) {
	for _, test := range []struct {
		version string
		want    map[string]float64
	}{
		{
			"otlp-1.52.0",
			map[string]float64{"STATUS_CODE_OK": 1, "STATUS_CODE_UNSET": 2, "STATUS_CODE_ERROR": 4},
		},
		{"1.52.0", map[string]float64{
			"STATUS_CODE_UNSET OK": 1, "STATUS_CODE_UNSET": 2,
			"STATUS_CODE_ERROR": 4,
		}},
	} {
		c := newCycle()
		origin := c.Origin(span.Origin{Service: "shop", TracerVersion: test.version})
		unset := c.Key(origin, span.Key{Service: "shop", Resource: "checkout"})
		ok := c.Key(origin,
			span.Key{
				Service: "shop", Resource: "checkout", Operation: "checkout",
				AdditionalTags: []string{span.StatusOK},
			})
		for _, of := range []struct {
			key   registry.KeyID
			flags span.Flags
			spans int
		}{{ok, 0, 1}, {unset, 0, 2}, {unset, span.Error, 4}} {
			for range of.spans {
				c.Add(0, of.key, time.Second, 1000, of.flags, 1)
			}
		}
		got := map[string]float64{}
		for _, p := range mustRead(t, encodeAll(t, withAll(), c))[0].Metrics[callsName].Points {
			status := p.Attributes["status.code"].(string)
			if more, has := p.Attributes["otel.status_code"]; has {
				status += " " + more.(string)
			}
			got[status] += float64(*p.Calls)
		}
		if !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %v, want %v", test.version, got, test.want)
		}
	}
}
