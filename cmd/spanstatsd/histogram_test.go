package main

import (
	"slices"
	"strings"
	"testing"
)

// TestHistograms: the default is exponential, and a flag selects explicit ones.
func TestHistograms(t *testing.T) {
	endpoint := "--otlp-metrics-endpoint=http://127.0.0.1:4318/v1/metrics"
	c := completed(t, endpoint, "--otlp-histogram=explicit:0.5,2").config
	if got := c.Exporters[0].Bounds; !slices.Equal(got, []float64{.5, 2}) {
		t.Errorf("the exporter has %v", got)
	}
	if got := completed(t, endpoint).config.Exporters[0].Bounds; got != nil {
		t.Errorf("by default it has %v", got)
	}
	conventions := completed(t, endpoint, "--otlp-dialect=conventions").config.Exporters[0].Bounds
	if !slices.Contains(conventions, .075) || !slices.Contains(conventions, 81.92) {
		t.Errorf("the buckets of the dialect conventions are %v", conventions)
	}
	if got := completed(t, endpoint, "--otlp-dialect=conventions",
		"--otlp-histogram=exponential").config.Exporters[0].Bounds; got != nil {
		t.Errorf("exponential histograms of the dialect conventions have %v", got)
	}
	datadog := []string{"config", "--check", endpoint, "--otlp-dialect=datadog"} // this dialect has no milliseconds
	if out, err := program(t, append(datadog, "--otlp-histogram=explicit")...).CombinedOutput(); err != nil {
		t.Errorf("explicit buckets of the dialect datadog: %s", out)
	}
	if output := refusal(t, append(datadog, "--otlp-histogram=explicit-ms")); !strings.Contains(output, "explicit-ms is of") {
		t.Errorf("milliseconds of the dialect datadog: %s", output)
	}
}
