package statustext_test

import (
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/status"
	"github.com/spanstatsd/spanstatsd/internal/status/statustext"
)

// TestRender_LastScrape also checks that a missing scrape does not count as a problem.
func TestRender_LastScrape(t *testing.T) {
	now := time.Now()
	for want, last := range map[string]time.Time{
		"Destination prometheus  /metrics/spans  not scraped yet":       {},
		"Destination prometheus  /metrics/spans  last scrape 1m 5s ago": now.Add(-65 * time.Second),
	} {
		text := statustext.Render(&status.Status{
			At:    now,
			Spans: status.Spans{Accounting: status.Accounting{Received: 7, Aggregated: 7, Balanced: true}},
			Delivery: status.Delivery{
				Agent: status.Agent{State: status.AgentOff},
				Destinations: []status.DestinationStatus{{
					Name:    "prometheus",
					URL:     "/metrics/spans",
					State:   export.StateAccepting,
					Scraped: &status.Scraped{Last: last},
				}},
			},
		}, nil, false)
		if !strings.Contains(text, want) || !strings.Contains(text, "Every received span is accounted for") {
			t.Errorf("want %q:\n%s", want, text)
		}
	}
}
