package statustext_test

import (
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/export"
	"github.com/spanstatsd/spanstatsd/internal/status"
	"github.com/spanstatsd/spanstatsd/internal/status/statustext"
)

// TestStatusSaysWhenSomebodyScraped also checks that a missing scrape does not count as a problem.
func TestStatusSaysWhenSomebodyScraped(t *testing.T) {
	now := time.Now()
	for want, last := range map[string]time.Time{
		"Destination prometheus  /metrics/spans  nobody has scraped it yet": {},
		"Destination prometheus  /metrics/spans  scraped 1m 5s ago":         now.Add(-65 * time.Second),
	} {
		text := statustext.Render(&status.Status{
			At:    now,
			Spans: status.Spans{Books: status.Books{Received: 7, Aggregated: 7, Balanced: true}},
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
		if !strings.Contains(text, want) || !strings.Contains(text, "Every span is accounted for") {
			t.Errorf("want %q:\n%s", want, text)
		}
	}
}
