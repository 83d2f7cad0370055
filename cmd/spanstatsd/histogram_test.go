package main

import (
	"slices"
	"testing"
)

// TestHistogramsAreExplicitWhereTheyAreAskedFor, with bounds by a name or of one's own.
func TestHistogramsAreExplicitWhereTheyAreAskedFor(t *testing.T) {
	for given, want := range map[string][]float64{
		"exponential": nil, "explicit": namedBounds["connector"], "explicit:connector": namedBounds["connector"],
		"explicit:sdk": namedBounds["sdk"], "explicit:0.01,1": {.01, 1},
	} {
		got, err := parseHistogram(given)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s is %v, %v; want %v", given, got, err, want)
		}
	}
	for _, given := range []string{"", "classic", "explicit:", "explicit:2,1", "exponential:sdk", "explicit:x"} {
		if got, err := parseHistogram(given); err == nil {
			t.Errorf("%q is %v", given, got)
		}
	}
	endpoint := "--otlp-metrics-endpoint=http://127.0.0.1:4318/v1/metrics"
	c := completed(t, endpoint, "--otlp-histogram=explicit:0.5,2").config
	if got := c.Exporters[0].(interface{ Bounds() []float64 }).Bounds(); !slices.Equal(got, []float64{.5, 2}) {
		t.Errorf("the exporter has %v", got)
	}
	if got := completed(t, endpoint).config.Exporters[0].(interface{ Bounds() []float64 }).Bounds(); got != nil {
		t.Errorf("by default it has %v", got)
	}
}
