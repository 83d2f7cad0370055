package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestDogStatsD_CountsLosses: lost spans are added up, a loss in another unit accounts for everything, and other metrics are
// ignored.
func TestDogStatsD_CountsLosses(t *testing.T) {
	d := &dogStatsD{losses: losses{}}
	for _, line := range []string{
		"datadog.trace_agent.receiver.spans_received:100|c|#lang:go\n",
		"datadog.trace_agent.receiver.spans_dropped:7|c|#lang:go\n", "datadog.trace_agent.receiver.spans_dropped:5|c\n",
		"datadog.trace_agent.stats_writer.dropped:0|c\n", "datadog.trace_agent.heap_alloc:1e9|g\n",
	} {
		d.count(line)
	}
	if got, err := d.read(); err != nil || got.spans() != 12 {
		t.Errorf("%v, %v; want 12 spans", got, err)
	}
	d.count("datadog.trace_agent.stats_writer.dropped:1|c\n")
	if got, err := d.read(); err != nil || got.spans() != otherUnit {
		t.Errorf("%v, %v; want a loss in another unit", got, err)
	}
	d.restarted()
	if got, err := d.read(); err != nil || got.spans() != 0 {
		t.Errorf("%v, %v after a restart", got, err)
	}
}

// TestScraper_AddsUpIncreases: a counter counts from 0, and again from 0 after a reset. Other metrics are ignored.
func TestScraper_AddsUpIncreases(t *testing.T) {
	text := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }))
	defer server.Close()
	s := &scraper{url: server.URL, ledger: newLedger(), last: map[string]float64{}}
	const series = callsMetric + `{service_name="shop",span_kind="SPAN_KIND_SERVER",span_name="GET /cart"} `
	for _, value := range []string{"3", "10", "4"} {
		text = "# TYPE calls counter\n" + series + value + "\nother_total{service_name=\"shop\"} 7\nup 1\n"
		if err := s.scrape(); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.ledger.counts; len(got) != 1 || got[cart] != 14 {
		t.Errorf("%v, want 10 spans before the reset and 4 after it", got)
	}
}
