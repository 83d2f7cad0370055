package points

import (
	"math"

	"github.com/spanstatsd/spanstatsd/internal/exemplars"
	"github.com/spanstatsd/spanstatsd/internal/flush"
	"github.com/spanstatsd/spanstatsd/internal/sketch"
)

// Point is what was counted of those spans of a series that have one outcome.
type Point struct {
	Attributes []byte // encoded
	Calls      uint64
	Seconds    float64
	Durations  sketch.Buckets
	Classic    []uint64           // spans by classic bucket; nil without bounds
	Exemplar   exemplars.Exemplar // none where its Span is 0
}

// count makes a point of a histogram, which has each span once. The sum has it as often as
// it weighs, so that is scaled to the spans. Where no span weighs more or less than one, that
// changes nothing. It reports whether anything was counted.
func (p *Point) count(h *sketch.Histogram, hits, nanoseconds float64) bool {
	p.Calls, p.Durations = flush.Whole(hits, math.MaxInt64), h.Buckets(sketch.DefaultMaxBuckets)
	if spans := float64(p.Durations.Spans); hits > 0 && hits != spans {
		nanoseconds *= spans / hits
	}
	if p.Durations.Spans > 0 {
		p.Seconds = max(0, nanoseconds) / 1e9
	}
	return p.Durations.Spans > 0 || p.Calls > 0
}
