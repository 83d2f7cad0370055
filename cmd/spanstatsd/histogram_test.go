package main

import (
	"slices"
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/export/points"
)

// TestHistogramsAreExplicitWhereTheyAreAskedFor, with bounds by a name or of one's own.
func TestHistogramsAreExplicitWhereTheyAreAskedFor(t *testing.T) {
	for given, want := range map[string]histogram{
		"exponential": {}, "explicit": {namedBounds["connector"], false},
		"explicit:connector": {namedBounds["connector"], false}, "explicit:sdk": {namedBounds["sdk"], false},
		"explicit:0.01,1": {[]float64{.01, 1}, false}, "explicit-ms:0.01,1": {[]float64{.01, 1}, true},
		"explicit-ms": {namedBounds["connector"], true},
	} {
		got, err := parseHistogram(given)
		if err != nil || !slices.Equal(got.bounds, want.bounds) || got.isMillis != want.isMillis {
			t.Errorf("%s is %v, %v; want %v", given, got, err, want)
		}
	}
	for _, given := range []string{
		"", "classic", "explicit:", "explicit:2,1", "exponential:sdk", "explicit:x", "explicit-s",
	} {
		if got, err := parseHistogram(given); err == nil {
			t.Errorf("%q is %v", given, got)
		}
	}
	endpoint := "--otlp-metrics-endpoint=http://127.0.0.1:4318/v1/metrics"
	c := completed(t, endpoint, "--otlp-histogram=explicit:0.5,2").config
	if got := c.Exporters[0].Bounds; !slices.Equal(got,
		[]float64{.5, 2}) {
		t.Errorf("the exporter has %v", got)
	}
	if got := completed(t, endpoint).config.Exporters[0].Bounds; got != nil {
		t.Errorf("by default it has %v", got)
	}
	for _, given := range []string{explicit, inMillis} { // Datadog's tracers measure in seconds
		o := statisticsOptions{dimensions: points.AllDimensions}
		o.histogram, _ = parseHistogram(given)
		if err := o.checkDialect(points.Datadog); (err != nil) != (given == inMillis) {
			t.Errorf("%s of the dialect datadog: %v", given, err)
		}
	}
}
