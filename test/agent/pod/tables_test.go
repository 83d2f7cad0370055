package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

func TestTables(t *testing.T) {
	of := cells()[:2]
	stable, many := of[0].String(), of[1].String()
	turns := []turn{
		{
			Cell: stable, Way: variants[0].name, CPU: parts{App: 100}, P99: 1.25, Rate: 300, Served: 299,
			Interval: 10, Requests: 20, Spans: 80,
		},
		{Cell: stable, Way: variants[3].name, CPU: parts{App: 900, Daemon: 1, Agent: 1}}, // not the median
		{
			Cell: stable, Way: variants[3].name, CPU: parts{App: 500, Daemon: 20, Agent: 30}, Traces: 1,
			Interval: 10, Spans: 80, Counted: counts{80, 20, 5, 3},
		},
		{Cell: stable, Way: variants[3].name, CPU: parts{App: 1, Daemon: 1, Agent: 1}},
		{
			Cell: many, Way: variants[1].name, CPU: parts{App: 300, Agent: 40}, Rate: 300, Served: 120, P99: 2000,
			Failed: 3, Pauses: 7, PauseMs: 44.6, Traces: 1, Interval: 10, Spans: 80,
			Counted: counts{60, 20, 10, 0},
		},
	}
	var got bytes.Buffer
	write(&got, of, turns)
	for _, line := range []string{
		"| java 48 MiB, stable | 100 |  |  | 550 (500 + 20 + 30) |  |  |  |  |  |\n",
		"| java 48 MiB, high cardinality |  | 340 (300 + 0 + 40) |  |  |  |  |  |  |  |\n",
		"| java 48 MiB, high cardinality |  | 2000.0, 120/s of 300, 3 failed |  |  |  |  |  |  |  |\n",
		"| java 48 MiB, high cardinality |  | 7, 45 |  |  |  |  |  |  |  |\n",
		"| java 48 MiB, stable |  |  |  | 50.0 %, masked 30.0 % |  |  |  |  |  |\n",
		"| java 48 MiB, high cardinality |  | 100.0 %, lost 25.0 % |  |  |  |  |  |  |  |\n",
	} {
		if !strings.Contains(got.String(), line) {
			t.Errorf("missing: %s", line)
		}
	}
	if n := strings.Count(got.String(), "\n| --- |"); n != len(tables) {
		t.Errorf("%d tables of %d:\n%s", n, len(tables), got.String())
	}
}

// TestVariants checks the properties that characterize each variant, since variants are rows of a table.
func TestVariants(t *testing.T) {
	names := map[string]bool{}
	for _, w := range slices.Concat(variants, otelVariants) {
		if names[w.name] || w.tracer == none && (w.computes || w.daemon != nil) ||
			w.tracer != opentelemetry && w.samples {
			t.Errorf("%+v", w)
		}
		names[w.name] = true
	}
}
