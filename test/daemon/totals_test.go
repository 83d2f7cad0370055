package daemon_test

import (
	"testing"

	"github.com/spanstatsd/spanstatsd/internal/daemon"
	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/export/otlp"
	"github.com/spanstatsd/spanstatsd/internal/export/points"
	"github.com/spanstatsd/spanstatsd/internal/testutil/eventually"
	"github.com/spanstatsd/spanstatsd/lab/standin/collector"
)

// cumulativeTo returns an exporter of cumulative totals.
func cumulativeTo(t *testing.T, url string) *otlp.Exporter {
	t.Helper()
	endpoint, err := otlp.ParseEndpoint(url)
	if err != nil {
		t.Fatal(err)
	}
	dimensions, err := points.ParseDimensions(points.AllDimensions)
	if err != nil {
		t.Fatal(err)
	}
	x, err := otlp.New(otlp.Config{
		Variables: otlp.Variables{Endpoint: endpoint}, Dimensions: dimensions,
		Temporality: otlp.Cumulative,
	})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// TestCumulative_ReachesCollector checks that each series has its own total, that totals are also sent
// when no spans are counted, and that each span is counted once.
func TestCumulative_ReachesCollector(t *testing.T) {
	stand, err := collector.Start(collector.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stand.Close() })
	p := startPair(t, func(c *daemon.Config) { c.Exporters = []export.Exporter{cumulativeTo(t, stand.URL()).Describe()} })
	c := p.client("shop")
	for range 3 {
		c.Publish(batch(100, "a"))
		c.Publish(batch(50, "b"))
		if err := c.Flush(t.Context()); err != nil {
			t.Error(err)
		}
	}
	requests := stand.Totals().Requests
	eventually.True(t, "totals are sent of cycles without spans",
		func() bool { return stand.Totals().Requests > requests+1 })
	got := stand.Totals()
	if got.Spans != 450 || got.Calls != 450 || got.ProblemCount != 0 {
		t.Errorf("%+v", got)
	}
	if accounting := p.Status().Destinations[1].Accounting; accounting.Flushed != 450 || accounting.Pending != 0 {
		t.Errorf("%+v", accounting)
	}
	p.stop()
}
