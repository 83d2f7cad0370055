package health

import (
	"time"

	"github.com/spanstatsd/spanstatsd/internal/flush"
	"github.com/spanstatsd/spanstatsd/internal/flush/prometheus"
)

// Scraped is when somebody last took statistics that are kept to be scraped.
type Scraped struct {
	Last time.Time `json:"last"` // zero before the first
}

// scrapedOf is that of a destination, nil where something is sent to it.
func scrapedOf(d flush.Destination, x *prometheus.Exporter) *Scraped {
	if x == nil || d.Name() != x.Describe().Name {
		return nil
	}
	all := &Scraped{}
	if last := lastScrape(x); last != 0 {
		all.Last = time.Unix(last, 0).UTC()
	}
	return all
}

// lastScrape is the same in seconds since the Unix epoch, 0 for never.
func lastScrape(x *prometheus.Exporter) int64 {
	if x == nil {
		return 0
	}
	return x.LastScrape()
}
