package doctor

import (
	"time"

	"github.com/spanstatsd/spanstatsd/internal/health"
)

// CallsQuery is what a Prometheus is asked: the sum of calls of all daemons, in either dialect that it
// may have.
const CallsQuery = `sum({__name__=~"traces_span_metrics_calls_total|traces_spanmetrics_calls_total"})`

// Arrival is what a Prometheus has.
type Arrival struct {
	Has   bool // there are such series, in the last five minutes
	Calls float64
	At    time.Time // by its clock
}

// Arrived compares it with what the daemon has given out. A Prometheus has the calls of other daemons too,
// and a span may stand for several calls, so it may well have more. It has less by what was counted since it
// last scraped, and by series that have ended.
func (f *Findings) Arrived(s *health.Status, a Arrival) {
	const about = "prometheus"
	flushed := uint64(0)
	for i := range s.Destinations {
		d := &s.Destinations[i]
		if d.Scraped != nil || d.Name == "otlp" && setting(s, "otlp-dialect") == "spanmetrics" {
			flushed = max(flushed, d.Books.Flushed)
		}
	}
	switch {
	case !a.Has && flushed > 0:
		f.add(Wrong, about, "see its page of targets for an error, or whether it drops or renames series",
			"%d spans were given out, and it has no calls of anybody", flushed)
	case !a.Has:
		f.add(Notice, about, "send a span, and look again in an interval",
			"it has no calls, and none were given out")
	case a.Calls < float64(flushed):
		f.add(Notice, about, "look again in a minute; if it stays, see whether relabelling drops series",
			"it has %.0f calls, and the daemon has given out %d spans", a.Calls, flushed)
	default:
		f.ok(about, "it has %.0f calls of all daemons, and this one has given out %d spans", a.Calls, flushed)
	}
	if ahead := a.At.Sub(s.At); !a.At.IsZero() && ahead.Abs() > mostAhead {
		f.add(Wrong, about, "set both clocks by NTP", "its clock differs by %.0f s from the daemon's",
			ahead.Seconds())
	}
}
