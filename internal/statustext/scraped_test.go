package statustext_test

import (
	"strings"
	"testing"
	"time"

	"github.com/spanstatsd/spanstatsd/internal/flush"
	"github.com/spanstatsd/spanstatsd/internal/health"
	"github.com/spanstatsd/spanstatsd/internal/statustext"
)

// TestStatusSaysWhenSomebodyScraped, and it is no trouble that nobody has.
func TestStatusSaysWhenSomebodyScraped(t *testing.T) {
	now := time.Now()
	for want, last := range map[string]time.Time{
		"Destination prometheus  /metrics/spans  nobody has scraped it yet": {},
		"Destination prometheus  /metrics/spans  scraped 1m 5s ago":         now.Add(-65 * time.Second),
	} {
		text := statustext.Render(&health.Status{
			At:    now,
			Spans: health.Spans{Books: health.Books{Received: 7, Aggregated: 7, Balanced: true}},
			Delivery: health.Delivery{
				Agent: health.Agent{State: health.AgentOff},
				Destinations: []health.DestinationStatus{{
					Name:    "prometheus",
					URL:     "/metrics/spans",
					State:   flush.Takes,
					Scraped: &health.Scraped{Last: last},
				}},
			},
		}, nil, false)
		if !strings.Contains(text, want) || !strings.Contains(text, "Every span is accounted for") {
			t.Errorf("want %q:\n%s", want, text)
		}
	}
}
